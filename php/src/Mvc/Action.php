<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** A method of a controller, and all that reflection has to say about it. */
final class Action
{
    public readonly string $class;

    public readonly string $method;

    /** Whether it answers in JSON, and so its errors: by its return type. */
    public readonly bool $isJson;

    /** Whether requests that change something need a CSRF token. */
    public readonly bool $isGuarded;

    private readonly ?Arguments $arguments;

    private readonly bool $isController;

    private readonly bool $hasConstructor;

    /**
     * @param \ReflectionClass<object> $class which may have inherited the method
     * @param list<string> $variables those of its route, in order
     */
    public function __construct(\ReflectionClass $class, \ReflectionMethod $method, public readonly array $variables)
    {
        $this->class = $class->name;
        $this->method = $method->name;
        $type = $method->getReturnType();
        $type = $type instanceof \ReflectionNamedType ? $type->getName() : '';
        $this->isJson = $type === 'array' || is_subclass_of($type, \JsonSerializable::class);
        $this->isGuarded = !$method->getAttributes(WithoutToken::class) && !$class->getAttributes(WithoutToken::class);
        $this->arguments = Arguments::of($method);
        $this->isController = $class->isSubclassOf(Controller::class);
        $this->hasConstructor = $class->getConstructor() !== null;
    }

    public function run(Context $context): mixed
    {
        $class = $this->class;
        $controller = $this->hasConstructor ? $context->services()->get($class) : new $class();
        if ($this->isController) {
            $controller->context = $context;
        }
        return $this->arguments === null
            ? $controller->{$this->method}()
            : $controller->{$this->method}(...$this->arguments->from($context));
    }
}
