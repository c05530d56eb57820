<?php

declare(strict_types=1);

namespace Outboard\Mvc\Rule;

use Outboard\Mvc\Rule;

/** A regular expression with delimiters. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Pattern implements Rule
{
    public function __construct(private readonly string $pattern, private readonly string $sentence = 'is not of the right form')
    {
    }

    public function check(mixed $value): ?string
    {
        return preg_match($this->pattern, (string) $value) === 1 ? null : $this->sentence;
    }
}
