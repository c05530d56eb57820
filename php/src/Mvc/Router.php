<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** Finds the action for a method and a path, with tables that are built once. */
final class Router
{
    /** @var array<string, array<string, Action>> actions by path, then by method or "*" */
    private array $fixed = [];

    /** @var list<array<string, Action>> actions of paths with variables, by method or "*" */
    private array $variable = [];

    /** @var array<string, int> indices in $variable, by pattern */
    private array $patterns = [];

    private string $pattern = '';

    /** @var array<string, string> paths of named routes */
    private array $names = [];

    private function __construct(
        private readonly string $defaultModule = 'index',
        private readonly string $defaultController = 'index',
        private readonly string $defaultAction = 'index',
    ) {
    }

    /** Reads `module/controller/*.php` below the directory. */
    public static function of(string $directory, string $default): self
    {
        $router = new self(...explode('/', $default, 3));
        foreach (glob("$directory/*/controller/*.php") ?: [] as $file) {
            $module = basename(dirname($file, 2));
            $class = "$module\\controller\\" . basename($file, '.php');
            if (!class_exists($class)) {
                throw new \LogicException("$file does not declare the class $class");
            }
            $class = new \ReflectionClass($class);
            if (!$class->isAbstract()) {
                $router->add($class, $module);
            }
        }
        $marked = array_map(static fn ($pattern, $at) => "$pattern(*MARK:$at)", array_keys($router->patterns), $router->patterns);
        $router->pattern = '~^(?|' . implode('|', $marked) . ')$~';
        return $router;
    }

    /**
     * Returns the action of a request; sets it and the path's variables in the context.
     *
     * @throws Problem 404 or 405
     */
    public function find(string $method, string $path, Context $context): Action
    {
        $matches = [];
        $actions = $this->fixed[$path] ?? $this->match($path, $matches);
        $action = $actions[$method] ?? $actions['*'] ?? self::other($method, $actions);
        foreach ($action->variables as $at => $name) {
            $context->variables[$name] = rawurldecode($matches[$at + 1] ?? '');
        }
        return $context->action = $action;
    }

    /** @param array<array-key, string|int|float|bool> $values */
    public function url(string $name, array $values): string
    {
        $path = $this->names[$name] ?? throw new \LogicException("no route is named $name");
        $path = (string) preg_replace_callback('~\{(\w+)[^}]*\}~', static function (array $matches) use (&$values, $name): string {
            $value = $values[$matches[1]] ?? throw new \LogicException("the route $name needs $matches[1]");
            unset($values[$matches[1]]);
            return rawurlencode((string) $value);
        }, $path);
        return $path . ($values === [] ? '' : '?' . http_build_query($values));
    }

    /**
     * @param array<array-key, string> $matches receives the values of the variables, from 1
     * @return array<string, Action>
     */
    private function match(string $path, array &$matches): array
    {
        $bare = rtrim($path, '/');
        if ($bare !== $path && isset($this->fixed[$bare])) {
            return $this->fixed[$bare];
        }
        if ($this->variable === [] || preg_match($this->pattern, $path, $matches) !== 1) {
            throw new Problem(404, "There is nothing at $path.");
        }
        return $this->variable[(int) ($matches['MARK'] ?? 0)];
    }

    /** @param array<string, Action> $actions */
    private static function other(string $method, array $actions): Action
    {
        if ($method === 'HEAD' && isset($actions['GET'])) {
            return $actions['GET'];
        }
        $allowed = implode(', ', array_keys($actions));
        throw new Problem(405, "The method $method is not allowed; use $allowed.", headers: ['Allow' => $allowed]);
    }

    /** @param \ReflectionClass<object> $class */
    private function add(\ReflectionClass $class, string $module): void
    {
        $prefix = ($class->getAttributes(Route::class)[0] ?? null)?->newInstance()->path ?? '';
        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            $routes = $method->getAttributes(Route::class);
            foreach ($routes as $route) {
                $this->addRoute($route->newInstance(), $prefix, $class, $method);
            }
            $matches = [];
            if ($routes === [] && preg_match('~^action(\w+)$~', $method->name, $matches) === 1) {
                $action = new Action($class, $method, []);
                foreach ($this->paths($module, strtolower($class->getShortName()), lcfirst($matches[1])) as $path) {
                    $this->fixed[$path]['*'] = $action;
                }
            }
        }
    }

    /**
     * The path of an action, and its short forms without default segments.
     *
     * @return list<string>
     */
    private function paths(string $module, string $controller, string $action): array
    {
        $paths = ["/$module/$controller/$action"];
        if ($action === $this->defaultAction) {
            $paths[] = "/$module/$controller";
            if ($controller === $this->defaultController) {
                $paths[] = "/$module";
                if ($module === $this->defaultModule) {
                    array_push($paths, '/', '');
                }
            }
        }
        return $paths;
    }

    /** @param \ReflectionClass<object> $class */
    private function addRoute(Route $route, string $prefix, \ReflectionClass $class, \ReflectionMethod $method): void
    {
        $path = $prefix . $route->path;
        $variables = [];
        $pattern = (string) preg_replace_callback(
            '~\{(\w+)(?::([^}]+))?\}|[^{]+~',
            static function (array $matches) use (&$variables, $method): string {
                if (!isset($matches[1])) {
                    return preg_quote($matches[0], '~');
                }
                $variables[] = $matches[1];
                return '(' . ($matches[2] ?? Arguments::pattern($method, $matches[1])) . ')';
            },
            $path,
        );
        $action = new Action($class, $method, $variables);
        foreach ($route->methods as $verb) {
            if ($variables === []) {
                $this->fixed[$path][$verb] = $action;
                continue;
            }
            $this->variable[$this->patterns[$pattern] ??= count($this->variable)][$verb] = $action;
        }
        if ($route->name !== '') {
            $this->names[$route->name] = $path;
        }
    }
}
