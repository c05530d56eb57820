<?php $this->layout('layout', ['title' => 'Outboard MVC']) ?>
<h1>A controller responds</h1>
<p class="lead">This page is <code>demo\controller\index::actionIndex()</code>. Its routes were read when the worker
  started; a request is a look into a table and a call.</p>
<ul class="cards">
<?php foreach ([
    ['/demo/index/hello?name=Ada', 'hello', 'A parameter of the action, from the query.'],
    ['/demo/index/json?page=2', 'json', 'An array becomes JSON; the page is an int.'],
    ['/demo/index/json?page=two', 'json, refused', 'A value that is not an int is refused with a sentence for the field.'],
    ['/demo/index/jsonError', 'jsonError', 'A problem in JSON: code and message.'],
    ['/demo/index/error', 'error', 'An exception: in development with its trace, else with a line in the log.'],
    ['/demo/index/nowhere', 'nowhere', 'No such action: 404.'],
] as [$href, $name, $text]): ?>
  <li><a href="<?= $this->text($href) ?>"><?= $this->text($name) ?></a><p><?= $this->text($text) ?></p><code><?= $this->text($href) ?></code></li>
<?php endforeach ?>
</ul>
