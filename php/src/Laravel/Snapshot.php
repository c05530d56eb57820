<?php

declare(strict_types=1);

namespace Outboard\Laravel;

use Dotenv\Dotenv;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Illuminate\Routing\Pipeline;
use Illuminate\Routing\Router;
use Illuminate\Support\Carbon;
use Symfony\Component\HttpFoundation\Cookie;

/**
 * The line of a Laravel application that boots once, in public/index.php where $app is known:
 *
 *     Outboard\Laravel\Snapshot::take($app);
 *
 * The application is bootstrapped, and the services and classes of an ordinary page are loaded, as Octane does
 * for its workers. Each request goes on from there, with nothing of another one. Elsewhere it does nothing.
 */
final class Snapshot
{
    /** Those that are not bound are left out. */
    private const SERVICES = [
        'auth', 'cache', 'cache.store', 'cookie', 'db', 'db.factory', 'encrypter', 'files', 'hash', 'log', 'router',
        'routes', 'session', 'session.store', 'translator', 'url', 'view',
    ];

    private const CLASSES = [Pipeline::class, Response::class, Carbon::class, Cookie::class];

    /** The request that is bound here is of the boot alone: each request binds its own. */
    public static function take(Application $app): void
    {
        if (!function_exists('Outboard\is_booting')) {
            return;
        }
        if (\Outboard\is_booting()) {
            $app->make(Kernel::class)->bootstrap();
            self::load($app);
        }
        // It looks up environment variables in all of $_SERVER, which differs in each request.
        $dotenv = class_exists(Dotenv::class) ? (new \ReflectionClass(Dotenv::class))->getFileName() : false;
        \Outboard\snapshot($dotenv === false ? [] : ['_SERVER' => dirname($dotenv) . '/']);
    }

    private static function load(Application $app): void
    {
        $request = Request::create('/');
        $app->instance('request', $request);
        foreach (self::SERVICES as $service) {
            self::attempt(static fn (): mixed => $app->bound($service) ? $app->make($service) : null);
        }
        self::attempt(static fn (): mixed => $app->make('view')->getEngineResolver()->resolve('blade'));
        array_map(class_exists(...), self::CLASSES);
        self::attempt(static fn () => self::loadRoutes($app->make('router'), $request));
    }

    /** Compiles the routes and loads their middleware. */
    private static function loadRoutes(Router $router, Request $request): void
    {
        $names = array_merge($router->getMiddleware(), ...array_values($router->getMiddlewareGroups()));
        array_map(class_exists(...), array_filter($names, is_string(...)));
        $routes = $router->getRoutes();
        foreach ($routes->getRoutes() as $route) {
            $route->matches($request);
        }
    }

    /** A service that cannot be made fails in the request that needs it, as without a snapshot. */
    private static function attempt(\Closure $load): void
    {
        try {
            $load();
        } catch (\Throwable) {
        }
    }
}
