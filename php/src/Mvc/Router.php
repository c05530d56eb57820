<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** From method and path to an action, by tables that are made once. */
final class Router
{
    /** @var array<string, array<string, Action>> actions by path, then by method or "*" */
    private array $fixed = [];

    /** @var list<array<string, Action>> actions of paths with variables, by method or "*" */
    private array $variable = [];

    /** @var array<string, int> where in it, by pattern */
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

    /** Reads `module/controller/*.php` below the folder. */
    public static function of(string $folder, string $default): self
    {
        $router = new self(...explode('/', $default, 3));
        foreach (glob("$folder/*/controller/*.php") ?: [] as $file) {
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
     * The action for a request; the context learns it, and the variables of its path.
     *
     * @throws Problem 404 or 405
     */
    public function find(string $method, string $path, Context $context): Action
    {
        $found = [];
        $actions = $this->fixed[$path] ?? $this->match($path, $found);
        $action = $actions[$method] ?? $actions['*'] ?? self::other($method, $actions);
        foreach ($action->variables as $at => $name) {
            $context->variables[$name] = rawurldecode($found[$at + 1] ?? '');
        }
        return $context->action = $action;
    }

    /** @param array<array-key, string|int|float|bool> $values */
    public function url(string $name, array $values): string
    {
        $path = $this->names[$name] ?? throw new \LogicException("no route is named $name");
        $path = (string) preg_replace_callback('~\{(\w+)[^}]*\}~', static function (array $found) use (&$values, $name): string {
            $value = $values[$found[1]] ?? throw new \LogicException("the route $name needs $found[1]");
            unset($values[$found[1]]);
            return rawurlencode((string) $value);
        }, $path);
        return $path . ($values === [] ? '' : '?' . http_build_query($values));
    }

    /**
     * @param array<array-key, string> $found gets the values of the variables, from 1
     * @return array<string, Action>
     */
    private function match(string $path, array &$found): array
    {
        $bare = rtrim($path, '/');
        if ($bare !== $path && isset($this->fixed[$bare])) {
            return $this->fixed[$bare];
        }
        if ($this->variable === [] || preg_match($this->pattern, $path, $found) !== 1) {
            throw new Problem(404, "There is nothing at $path.");
        }
        return $this->variable[(int) ($found['MARK'] ?? 0)];
    }

    /** @param array<string, Action> $actions */
    private static function other(string $method, array $actions): Action
    {
        if ($method === 'HEAD' && isset($actions['GET'])) {
            return $actions['GET'];
        }
        $allowed = implode(', ', array_keys($actions));
        throw new Problem(405, "$method is not for this address; $allowed is.", headers: ['Allow' => $allowed]);
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
            $found = [];
            if ($routes === [] && preg_match('~^action(\w+)$~', $method->name, $found) === 1) {
                $action = new Action($class, $method, []);
                foreach ($this->paths($module, strtolower($class->getShortName()), lcfirst($found[1])) as $path) {
                    $this->fixed[$path]['*'] = $action;
                }
            }
        }
    }

    /**
     * The path of an action, and those that leave out what is the default.
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
            static function (array $found) use (&$variables, $method): string {
                if (!isset($found[1])) {
                    return preg_quote($found[0], '~');
                }
                $variables[] = $found[1];
                return '(' . ($found[2] ?? Arguments::pattern($method, $found[1])) . ')';
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
