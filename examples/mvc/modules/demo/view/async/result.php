<?php $this->layout('layout', ['title' => $title]) ?>
<h1><?= $this->text($title) ?></h1>
<p class="figure"><?= $milliseconds ?> <span>ms</span></p>
<pre><?= $this->text(json_encode($result, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES)) ?></pre>
<p><a href="/demo/async">All ways of waiting</a></p>
