<?php $this->layout('layout', ['title' => 'A & B']) ?>
<p><?= $this->text($who) ?></p>
