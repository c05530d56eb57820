<?php

/** Laravel's front controller, and one line of ours: what is above it is done once. */

declare(strict_types=1);

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

$app = require __DIR__ . '/../bootstrap/app.php';
$kernel = $app->make(Kernel::class);
$kernel->bootstrap();
$app['router']->middleware('web')->group(static fn ($router) => (require __DIR__ . '/../routes/web.php')($router));

if (function_exists('Outboard\snapshot')) {
    // In classic mode: environment variables are looked up in all of $_SERVER, which differs in each request.
    Outboard\snapshot(['_SERVER' => '/usr/share/php/Dotenv/']);
}

$request = Request::capture();
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
