<?php use Guestbook\View; ?>
<main class="problem">
  <p class="status"><?= $status ?></p>
  <h1><?= View::text($title) ?></h1>
  <p><a href="<?= View::url('/') ?>">Back to the guestbook</a></p>
</main>
