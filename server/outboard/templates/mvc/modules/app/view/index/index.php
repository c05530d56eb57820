<?php $this->layout('layout', ['title' => '{{name}}']) ?>
<h1>Hello, <?= $this->text($name) ?></h1>
<p>This is <code>app\controller\index::actionIndex()</code>. Edit it, and the page reloads.</p>
<p><a href="/app/index/sum?a=40&amp;b=2">An action with a JSON response</a></p>
