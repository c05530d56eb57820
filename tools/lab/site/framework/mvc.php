<?php
// The same page from a framework in a worker script.
require __DIR__ . '/php/autoload.php';
(new Outboard\Mvc\Application(__DIR__ . '/modules'))->serve();
