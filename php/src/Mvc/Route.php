<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/**
 * The path of an action, instead of `/module/controller/action`; on a class, the prefix of its routes.
 * `{name}` is a parameter of the action: digits for an int, else anything but a slash; `{name:regex}` sets
 * another pattern.
 */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Route
{
    /** @var list<string> */
    public readonly array $methods;

    public function __construct(public readonly string $path, public readonly string $name = '', string ...$methods)
    {
        $this->methods = array_values($methods) ?: ['*'];
    }
}
