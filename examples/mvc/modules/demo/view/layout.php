<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title><?= $this->text($title) ?></title>
  <link rel="icon" href="<?= $this->asset('favicon.svg') ?>" type="image/svg+xml">
  <link rel="stylesheet" href="<?= $this->asset('style.css') ?>">
</head>
<body>
  <header class="bar">
    <a class="brand" href="/"><img src="<?= $this->asset('favicon.svg') ?>" alt="" width="28" height="28"> Outboard MVC</a>
    <nav>
      <a href="/demo/index/index">Actions</a>
      <a href="/demo/async">Waiting</a>
      <a href="<?= $this->url('notes') ?>">Notes</a>
    </nav>
  </header>
  <main>
<?= $content ?>
  </main>
  <footer>Handled by worker <?= getmypid() ?>, which stays.</footer>
</body>
</html>
