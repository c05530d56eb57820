<?php
// The same page from a framework in a resident script.
require __DIR__ . '/php/autoload.php';
(new Outboard\Mvc\Application(__DIR__ . '/modules'))->serve();
