<?php

/** The application, as Laravel's skeleton makes it; Debian's php-laravel-framework needs no Composer. */

declare(strict_types=1);

// Laravel 8 is older than this PHP.
error_reporting(E_ALL & ~E_DEPRECATED);

require_once 'Illuminate/autoload.php';
require __DIR__ . '/../app/Http/Kernel.php';
require __DIR__ . '/../app/Handler.php';
// With Composer this is outboard/runtime, which is loaded automatically.
require __DIR__ . '/../outboard/Snapshot.php';

$app = new Illuminate\Foundation\Application(dirname(__DIR__));
$app->singleton(Illuminate\Contracts\Http\Kernel::class, App\Http\Kernel::class);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, App\Handler::class);
$app->booted(static function () use ($app): void {
    $app['router']->middleware('web')->group(static fn ($router) => (require __DIR__ . '/../routes/web.php')($router));
});

return $app;
