<?php $this->layout('layout', ['title' => 'Notes']) ?>
<h1>Notes</h1>
<?php foreach ($flashes as $flash): ?>
<p class="notice"><?= $this->text($flash) ?></p>
<?php endforeach ?>
<form method="post" action="<?= $this->url('notes') ?>">
  <?= $this->token() ?>
  <label for="name">Your name</label>
  <input id="name" name="name" value="<?= $this->text($name) ?>" maxlength="40" required>
  <label for="text">Your note</label>
  <textarea id="text" name="text" rows="3" maxlength="280" required></textarea>
  <button>Put it on the board</button>
</form>
<?php foreach ($notes as $note): ?>
<article>
  <header><strong><?= $this->text($note['name']) ?></strong> <a href="<?= $this->url('note', id: $note['id']) ?>"><?= date('j F, H:i', $note['at']) ?></a></header>
  <p><?= nl2br($this->text($note['text'])) ?></p>
</article>
<?php endforeach ?>
<?php if ($notes === []): ?>
<p class="empty">Nothing yet. The first note is yours.</p>
<?php endif ?>
