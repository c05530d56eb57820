<?php

/** Laravel's front controller, and one line of ours: what is above it and in it is done once. */

declare(strict_types=1);

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

$app = require __DIR__ . '/../bootstrap/app.php';

Outboard\Laravel\Snapshot::take($app);

$kernel = $app->make(Kernel::class);
$request = Request::capture();
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
