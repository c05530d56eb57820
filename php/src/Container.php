<?php

declare(strict_types=1);

namespace Outboard;

/**
 * Creates services by class name: shared ones once per worker, scoped ones once per request. Any other class
 * is instantiated each time, with constructor arguments by their types.
 */
final class Container
{
    /** @var array<string, \Closure(Container): object> */
    private array $shared = [];

    /** @var array<string, \Closure(Container): object> */
    private array $scoped = [];

    /** @var array<string, object> */
    private array $instances = [];

    /** @var array<string, \Closure(Container): object> factories of other classes, reflected once */
    private array $plans = [];

    private ?Container $worker = null;

    /**
     * Registers a service with one instance per worker.
     *
     * @param \Closure(Container): object $factory
     */
    public function share(string $name, \Closure $factory): self
    {
        $this->shared[$name] = $factory;
        return $this;
    }

    /**
     * Registers a service with one instance per request.
     *
     * @param \Closure(Container): object $factory
     */
    public function scoped(string $name, \Closure $factory): self
    {
        $this->scoped[$name] = $factory;
        return $this;
    }

    /** The container of one request. */
    public function scope(object ...$known): self
    {
        $scope = new self();
        $scope->worker = $this;
        foreach ($known as $object) {
            $scope->instances[$object::class] = $object;
        }
        return $scope;
    }

    /**
     * @template T of object
     * @param class-string<T>|string $name
     * @return ($name is class-string<T> ? T : object)
     */
    public function get(string $name): object
    {
        return $this->instances[$name] ?? $this->create($name);
    }

    private function create(string $name): object
    {
        $worker = $this->worker ?? $this;
        if (isset($worker->shared[$name])) {
            return $worker->instances[$name] ??= ($worker->shared[$name])($worker);
        }
        if (!isset($worker->scoped[$name])) {
            return ($worker->plans[$name] ??= self::plan($name))($this);
        }
        if ($this->worker === null) {
            throw new \LogicException("$name is a service of requests, so a shared service cannot use it");
        }
        return $this->instances[$name] = ($worker->scoped[$name])($this);
    }

    /** @return \Closure(Container): object */
    private static function plan(string $name): \Closure
    {
        if (!class_exists($name)) {
            throw new \LogicException("there is no service or class $name");
        }
        $class = new \ReflectionClass($name);
        $arguments = [];
        foreach ($class->getConstructor()?->getParameters() ?? [] as $parameter) {
            $type = $parameter->getType();
            if ($type instanceof \ReflectionNamedType && !$type->isBuiltin()) {
                $arguments[] = $type->getName();
            } elseif (!$parameter->isOptional()) {
                throw new \LogicException("$name: \${$parameter->getName()} needs a class as its type");
            } else {
                break;
            }
        }
        return static fn (Container $container): object => $class->newInstance(...array_map($container->get(...), $arguments));
    }
}
