<?php

/** Controllers and views; what is here runs once per worker. */

declare(strict_types=1);

use Outboard\Mvc\Application;

// `composer require outboard/runtime`, or the package as it came with the server.
$autoload = __DIR__ . '/vendor/autoload.php';
require is_file($autoload) ? $autoload : '{{package}}/autoload.php';

(new Application(__DIR__ . '/modules', __DIR__ . '/public', default: 'app/index/index'))->serve();
