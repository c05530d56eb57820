<?php

namespace Swoole;

/** Passes everything on to another object. */
class ObjectProxy
{
    protected $__object;

    public function __construct(object $object)
    {
        $this->__object = $object;
    }

    public function __getObject()
    {
        return $this->__object;
    }

    public function __get(string $name)
    {
        return $this->__object->{$name};
    }

    public function __set(string $name, mixed $value): void
    {
        $this->__object->{$name} = $value;
    }

    public function __isset(string $name)
    {
        return isset($this->__object->{$name});
    }

    public function __unset(string $name): void
    {
        unset($this->__object->{$name});
    }

    public function __call(string $name, array $arguments)
    {
        return $this->__object->{$name}(...$arguments);
    }

    public function __invoke(mixed ...$arguments)
    {
        return ($this->__object)(...$arguments);
    }
}
