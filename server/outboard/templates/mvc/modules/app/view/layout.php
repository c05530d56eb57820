<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title><?= $this->text($title) ?></title>
  <link rel="stylesheet" href="<?= $this->asset('style.css') ?>">
</head>
<body>
  <main>
<?= $content ?>
  </main>
</body>
</html>
