<?php
/**
 * @var Outboard\Mvc\View $this
 * @var string $title
 * @var string $content
 */
?>
<title><?= $this->text($title) ?></title><?= $content ?>
