<?php use Guestbook\View; ?>
<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title><?= View::text($title) ?></title>
  <link rel="icon" href="<?= View::url('/favicon.svg') ?>" type="image/svg+xml">
  <link rel="stylesheet" href="<?= View::url('/style.css') ?>">
</head>
<body>
  <header class="bar">
    <a class="brand" href="<?= View::url('/') ?>"><img src="<?= View::url('/favicon.svg') ?>" alt="" width="28" height="28"> The Guestbook</a>
    <nav>
      <a href="<?= View::url('/about') ?>">About</a>
      <a href="<?= View::url('/api/entries') ?>">API</a>
    </nav>
  </header>
  <?= $content ?>
  <footer>A small application in plain PHP: SQLite, sessions, uploads, JSON.</footer>
</body>
</html>
