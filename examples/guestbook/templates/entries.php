<?php use Guestbook\{Entries, View}; ?>
<main class="book">
  <section class="sign" aria-labelledby="sign-title">
    <h1 id="sign-title">Leave a line</h1>
    <?php if ($notice): ?>
      <p class="notice <?= $notice['kind'] ?>" role="status"><?= View::text($notice['text']) ?></p>
    <?php endif ?>
    <form method="post" action="<?= View::url('/') ?>" enctype="multipart/form-data">
      <input type="hidden" name="token" value="<?= $token ?>">
      <?php if ($name === ''): ?>
        <label for="name">Your name</label>
        <input id="name" name="name" required maxlength="<?= Entries::NAME_MAX ?>" autocomplete="name">
      <?php endif ?>
      <label for="message">Message</label>
      <textarea id="message" name="message" rows="4" required maxlength="<?= Entries::MESSAGE_MAX ?>"
        placeholder="What brought you here?"><?= View::text($draft) ?></textarea>
      <label for="picture">A picture <span class="hint">if you like, up to 2 MB</span></label>
      <input id="picture" name="picture" type="file" accept="image/jpeg,image/png,image/gif,image/webp">
      <button>Sign the book</button>
    </form>
    <?php if ($name !== ''): ?>
      <form class="who" method="post" action="<?= View::url('/sign-out') ?>">
        <input type="hidden" name="token" value="<?= $token ?>">
        <span>Signed in as <strong><?= View::text($name) ?></strong></span>
        <button class="quiet">Sign out</button>
      </form>
    <?php endif ?>
  </section>

  <section aria-label="Entries">
    <?php if ($entries === []): ?>
      <p class="empty">The book is empty. Yours will be the first line.</p>
    <?php else: ?>
      <p class="count"><?= $total === 1 ? 'One entry' : "$total entries" ?></p>
    <?php endif ?>
    <?php foreach ($entries as $entry): ?>
      <article class="entry" id="entry-<?= $entry['id'] ?>">
        <header>
          <span class="avatar hue-<?= View::hue($entry['name']) ?>" aria-hidden="true"><?= View::text(View::initial($entry['name'])) ?></span>
          <strong><?= View::text($entry['name']) ?></strong>
          <time datetime="<?= gmdate('c', $entry['written_at']) ?>"><?= View::ago($entry['written_at']) ?></time>
        </header>
        <p><?= nl2br(View::text($entry['message'])) ?></p>
        <?php if ($entry['picture'] !== null): ?>
          <?php $picture = View::url('/pictures/' . $entry['picture']) ?>
          <a href="<?= $picture ?>"><img src="<?= $picture ?>" alt="A picture from <?= View::text($entry['name']) ?>" loading="lazy"></a>
        <?php endif ?>
      </article>
    <?php endforeach ?>
    <?php if ($pages > 1): ?>
      <nav class="pages" aria-label="Pages">
        <?= $page > 1 ? '<a rel="prev" href="?page=' . ($page - 1) . '">← Newer</a>' : '<span></span>' ?>
        <span><?= "Page $page of $pages" ?></span>
        <?= $page < $pages ? '<a rel="next" href="?page=' . ($page + 1) . '">Older →</a>' : '<span></span>' ?>
      </nav>
    <?php endif ?>
  </section>
</main>
