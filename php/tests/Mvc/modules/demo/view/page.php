<?php
/**
 * @var Outboard\Mvc\View $this
 * @var string $who
 */
?>
<?php $this->layout('layout', ['title' => 'A & B']) ?>
<p><?= $this->text($who) ?></p>
