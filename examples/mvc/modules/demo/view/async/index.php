<?php $this->layout('layout', ['title' => 'Waiting']) ?>
<h1>Waiting, in several ways</h1>
<p class="lead">A worker holds many requests. What waits is suspended, and the worker goes on with others.</p>
<ul class="cards">
<?php foreach ([
    ['/demo/async/model', 'model', 'A query by a service of the request.'],
    ['/demo/async/sync', 'sync', 'Three naps of 200 ms, one after the other.'],
    ['/demo/async/parallel', 'parallel', 'The same three at the same time.'],
    ['/demo/async/task', 'task', 'Work that a task worker does, and its result.'],
    ['/demo/async/http', 'http', 'Two fetches at the same time, made by the gateway.'],
] as [$href, $name, $text]): ?>
  <li><a href="<?= $this->text($href) ?>"><?= $this->text($name) ?></a><p><?= $this->text($text) ?></p><code><?= $this->text($href) ?></code></li>
<?php endforeach ?>
</ul>
