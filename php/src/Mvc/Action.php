<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** A method of a controller, with its reflected properties. */
final class Action
{
    public readonly string $class;

    public readonly string $method;

    /** Whether it responds with JSON, also for errors: by its return type. */
    public readonly bool $isJson;

    /** Whether requests with side effects need a CSRF token. */
    public readonly bool $isGuarded;

    private readonly ?Arguments $arguments;

    private readonly bool $hasConstructor;

    /**
     * @param \ReflectionClass<object> $reflection its class, which may inherit the method
     * @param list<string> $variables those of its route, in order
     */
    public function __construct(
        private readonly \ReflectionClass $reflection,
        \ReflectionMethod $method,
        public readonly array $variables,
    ) {
        $this->class = $reflection->name;
        $this->method = $method->name;
        $type = $method->getReturnType();
        $type = $type instanceof \ReflectionNamedType ? $type->getName() : '';
        $this->isJson = $type === 'array' || is_subclass_of($type, \JsonSerializable::class);
        $this->isGuarded = !$method->getAttributes(WithoutToken::class) && !$reflection->getAttributes(WithoutToken::class);
        $this->arguments = Arguments::of($method);
        $this->hasConstructor = $reflection->getConstructor() !== null;
    }

    public function run(Context $context): mixed
    {
        $controller = $this->hasConstructor ? $context->services()->get($this->class) : $this->reflection->newInstance();
        if ($controller instanceof Controller) {
            $controller->context = $context;
        }
        return [$controller, $this->method](...$this->arguments?->from($context) ?? []);
    }
}
