<?php

declare(strict_types=1);

namespace Outboard\Mvc;

use Outboard\Container;
use Outboard\Request;
use Outboard\Response;

/**
 * Modules of controllers and views in one directory, for worker mode:
 *
 *     (new Outboard\Mvc\Application(__DIR__ . '/modules'))->serve();
 *
 * `/module/controller/action` is `module\controller\name::actionName()`. Routes, parameters and
 * attributes are read once, at boot; a request needs a table lookup and a call.
 */
final class Application
{
    private readonly Router $router;

    private readonly Errors $errors;

    /** @var array<string, string> URLs of assets by their paths */
    private array $assets = [];

    public readonly bool $development;

    /**
     * @param string $directory has one directory per module, each with `controller` and `view`
     * @param string $public the document root, for the versions of assets
     * @param string $default the module, controller and action for missing segments
     * @param string|null $environment "development" shows traces; null takes APP_ENV
     */
    public function __construct(
        public readonly string $directory,
        public readonly string $public = '',
        public readonly Container $services = new Container(),
        string $default = 'demo/index/index',
        ?string $environment = null,
    ) {
        spl_autoload_register(static function (string $class) use ($directory): void {
            $file = $directory . '/' . strtr($class, '\\', '/') . '.php';
            if (is_file($file)) {
                require $file;
            }
        });
        $environment ??= getenv('OUTBOARD_ENV') ?: getenv('APP_ENV') ?: 'production';
        $this->development = $environment === 'development';
        $this->errors = new Errors($this->development);
        $this->router = Router::of($directory, $default);
    }

    /** Handles requests until the worker is to stop. */
    public function serve(): void
    {
        \Outboard\serve($this->handle(...));
    }

    /** Returns the action's result, or a page for its exception. */
    public function handle(Request $request): mixed
    {
        $context = new Context($this, $request);
        try {
            $method = $request->method();
            $action = $this->router->find($method, $request->path(), $context);
            if ($action->isGuarded && $method !== 'GET' && $method !== 'HEAD') {
                $context->session()->checkToken($request);
            }
            $result = $action->run($context);
            return \is_array($result) ? Response::json($result) : $result;
        } catch (\Throwable $thrown) {
            return $this->errors->respond($thrown, $context);
        }
    }

    /**
     * The URL of a named route. Values without a variable in the path become the query.
     *
     * @param array<array-key, string|int|float|bool> $values
     */
    public function url(string $name, array $values = []): string
    {
        return $this->router->url($name, $values);
    }

    /** The URL of a file below the document root, with its version for long caching. */
    public function asset(string $path): string
    {
        return $this->assets[$path] ??= '/' . ltrim($path, '/') . $this->version($path);
    }

    private function version(string $path): string
    {
        $file = "$this->public/$path";
        return is_file($file) ? '?v=' . base_convert((string) filemtime($file), 10, 36) : '';
    }
}
