<?php

/** Front controller and worker script in one: under php-fpm it handles one request, here one after the other. */

declare(strict_types=1);

require dirname(__DIR__) . '/src/autoload.php';

$kernel = new App\Kernel($_SERVER['APP_ENV'] ?? 'prod', ($_SERVER['APP_DEBUG'] ?? '0') === '1');

exit((new Outboard\Symfony\KernelRunner($kernel))->run());
