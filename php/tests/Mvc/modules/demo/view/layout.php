<title><?= $this->text($title) ?></title><?= $content ?>
