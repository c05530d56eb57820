<?php

declare(strict_types=1);

namespace Outboard;

/**
 * Makes services by class name: shared ones once per worker, scoped ones once per request. Any
 * other class is made anew, its constructor's arguments by their types.
 */
final class Container
{
    /** @var array<string, \Closure(Container): object> */
    private array $shared = [];

    /** @var array<string, \Closure(Container): object> */
    private array $scoped = [];

    /** @var array<string, object> */
    private array $made = [];

    /** @var array<string, \Closure(Container): object> what makes the other classes, read once */
    private array $plans = [];

    private ?Container $worker = null;

    /**
     * A service that stays for the life of the worker.
     *
     * @param \Closure(Container): object $factory
     */
    public function share(string $name, \Closure $factory): self
    {
        $this->shared[$name] = $factory;
        return $this;
    }

    /**
     * A service that each request has one of its own of.
     *
     * @param \Closure(Container): object $factory
     */
    public function scoped(string $name, \Closure $factory): self
    {
        $this->scoped[$name] = $factory;
        return $this;
    }

    /** The container of one request, to be forgotten with it. */
    public function scope(object ...$known): self
    {
        $scope = new self();
        $scope->worker = $this;
        foreach ($known as $object) {
            $scope->made[$object::class] = $object;
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
        return $this->made[$name] ?? $this->make($name);
    }

    private function make(string $name): object
    {
        $worker = $this->worker ?? $this;
        if (isset($worker->shared[$name])) {
            return $worker->made[$name] ??= ($worker->shared[$name])($worker);
        }
        if (!isset($worker->scoped[$name])) {
            return ($worker->plans[$name] ??= self::plan($name))($this);
        }
        if ($this->worker === null) {
            throw new \LogicException("$name is a service of requests: what stays in the worker cannot hold it");
        }
        return $this->made[$name] = ($worker->scoped[$name])($this);
    }

    /** @return \Closure(Container): object */
    private static function plan(string $name): \Closure
    {
        if (!class_exists($name)) {
            throw new \LogicException("no service is named $name, and no class");
        }
        $class = new \ReflectionClass($name);
        $arguments = [];
        foreach ($class->getConstructor()?->getParameters() ?? [] as $parameter) {
            $type = $parameter->getType();
            if ($type instanceof \ReflectionNamedType && !$type->isBuiltin()) {
                $arguments[] = $type->getName();
            } elseif (!$parameter->isOptional()) {
                throw new \LogicException("$name: \${$parameter->getName()} has no class that it could be made by");
            } else {
                break;
            }
        }
        return static fn (Container $container): object => $class->newInstance(...array_map($container->get(...), $arguments));
    }
}
