<?php

declare(strict_types=1);

namespace Outboard\Mvc\Rule;

use Outboard\Mvc\Rule;

/** The inclusive range of a number. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Range implements Rule
{
    public function __construct(private readonly int|float $min, private readonly int|float $max)
    {
    }

    public function check(mixed $value): ?string
    {
        $isBetween = is_numeric($value) && $value >= $this->min && $value <= $this->max;
        return $isBetween ? null : "is not between $this->min and $this->max";
    }
}
