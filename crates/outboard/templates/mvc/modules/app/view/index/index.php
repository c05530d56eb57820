<?php $this->layout('layout', ['title' => '{{name}}']) ?>
<h1>Hello, <?= $this->text($name) ?></h1>
<p>This is <code>app\controller\index::actionIndex()</code>. Change it: the page follows.</p>
<p><a href="/app/index/sum?a=40&amp;b=2">An action that answers in JSON</a></p>
