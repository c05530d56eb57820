<?php use Guestbook\View; ?>
<main class="about">
  <h1>What serves this page</h1>
  <dl>
    <?php foreach ($facts as $label => $fact): ?>
      <div><dt><?= View::text($label) ?></dt><dd><?= View::text($fact) ?></dd></div>
    <?php endforeach ?>
  </dl>

  <h2>PHP processes</h2>
  <p>Reload this page a few times, or send many requests at once: the server decides which process
    responds, and how many there are.</p>
  <table>
    <thead><tr><th>Process</th><th>Requests handled</th></tr></thead>
    <tbody>
      <?php foreach ($workers as $pid => $requests): ?>
        <tr<?= $pid === $own_pid ? ' class="own"' : '' ?>>
          <td><?= $pid ?><?= $pid === $own_pid ? ' <span class="hint">this one</span>' : '' ?></td>
          <td><?= number_format($requests) ?></td>
        </tr>
      <?php endforeach ?>
    </tbody>
  </table>
</main>
