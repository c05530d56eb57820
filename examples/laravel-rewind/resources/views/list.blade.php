<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{{ config('app.name') }}</title>
  <link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
  <h1>{{ config('app.name') }}</h1>
  <form method="post" action="/">
    @csrf
    <input name="thing" maxlength="40" required aria-label="What to take" placeholder="What to take">
    <button>Add</button>
  </form>
  <ul>
    @forelse ($things as $thing)
      <li>{{ $thing }}</li>
    @empty
      <li>Nothing yet.</li>
    @endforelse
  </ul>
  <p>Laravel {{ app()->version() }}, booted once; process {{ getmypid() }} handles this request; its memory is put back afterwards.</p>
</main>
</body>
</html>
