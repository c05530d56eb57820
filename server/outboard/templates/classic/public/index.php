<?php

/** Runs once per request that matches no file in this directory. */

declare(strict_types=1);

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path !== '/') {
    http_response_code(404);
}
$name = is_string($_GET['name'] ?? null) ? $_GET['name'] : 'world';
?>
<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{{name}}</title>
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <main>
<?php if ($path === '/'): ?>
    <h1>Hello, <?= htmlspecialchars($name) ?></h1>
    <p>This is <code>public/index.php</code> of <strong>{{name}}</strong>. Edit it, and the page reloads.</p>
<?php else: ?>
    <h1>Not found</h1>
    <p><a href="/">Home page</a></p>
<?php endif ?>
  </main>
</body>
</html>
