<?php
/**
 * The page for an action's exception.
 *
 * @var Outboard\Mvc\View $this
 * @var Outboard\Mvc\Problem $problem
 * @var Throwable $thrown
 * @var string $message
 * @var string $id
 * @var list<array{in: string, file: string, line: int, lines: array<int, string>}> $frames innermost first
 */
?>
<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title><?= $problem->status ?> · <?= $this->text($message) ?></title>
  <style>
    :root { --paper: #f6f1e7; --card: #fffdf8; --ink: #22302f; --soft: #66726f; --line: #e3dac8; --brass: #b3651a; --mark: #f9e6c8; }
    @media (prefers-color-scheme: dark) {
      :root { --paper: #14191b; --card: #1d2426; --ink: #e8e4da; --soft: #9aa5a3; --line: #313b3d; --brass: #e2a45f; --mark: #45341c; }
    }
    body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
    main { width: min(60rem, 100% - 2.5rem); margin: 0 auto; padding: 4rem 0; }
    .plain { text-align: center; padding-top: 18vh; }
    .status { margin: 0; color: var(--brass); font: 600 3.5rem Georgia, serif; }
    h1 { margin: .25rem 0 1rem; font: 600 1.5rem/1.3 Georgia, serif; overflow-wrap: anywhere; }
    .soft, summary span { color: var(--soft); font-size: .875rem; }
    details { background: var(--card); border: 1px solid var(--line); border-radius: 12px; margin: .7rem 0; overflow: hidden; }
    summary { padding: .7rem 1rem; cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
    summary span { display: block; font-weight: 400; }
    ol { margin: 0; padding: .5rem 0 .8rem; overflow-x: auto; list-style: none; font: .8125rem/1.7 ui-monospace, monospace; border-top: 1px solid var(--line); }
    li { padding: 0 1rem; white-space: pre; min-width: max-content; }
    li b { display: inline-block; width: 3.2rem; color: var(--soft); font-weight: 400; }
    li.here { background: var(--mark); }
  </style>
</head>
<body>
<main<?= $frames === [] ? ' class="plain"' : '' ?>>
  <p class="status"><?= $problem->status ?></p>
  <h1><?= $this->text($message) ?></h1>
  <p class="soft"><?= $frames === [] ? '' : $this->text($thrown::class) . ' · ' ?>code <?= $problem->getCode() ?> · request <?= $this->text($id) ?></p>
<?php foreach ($frames as $number => $frame): ?>
  <details<?= $number < 2 ? ' open' : '' ?>>
    <summary><?= $this->text($frame['in']) ?><span><?= $this->text($frame['file']) ?>:<?= $frame['line'] ?></span></summary>
    <ol><?php foreach ($frame['lines'] as $line => $text): ?><li<?= $line === $frame['line'] ? ' class="here"' : '' ?>><b><?= $line ?></b><?= $this->text($text) ?></li><?php endforeach ?></ol>
  </details>
<?php endforeach ?>
</main>
</body>
</html>
