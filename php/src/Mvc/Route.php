<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/**
 * Where an action answers, in place of `/module/controller/action`; on a class, what all of its
 * routes begin with. `{name}` is a parameter of the action: digits if that is an int, else
 * anything but a slash; `{name:regex}` says otherwise.
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
