<?php

/** Symfony's front controller with one line more: what is above it is done once, what is below once a request. */

declare(strict_types=1);

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/src/autoload.php';

$kernel = new Kernel($_SERVER['APP_ENV'] ?? 'prod', ($_SERVER['APP_DEBUG'] ?? '0') === '1');
$kernel->boot();

if (function_exists('Outboard\snapshot')) {
    Outboard\snapshot();
}

$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
