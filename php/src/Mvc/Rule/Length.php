<?php

declare(strict_types=1);

namespace Outboard\Mvc\Rule;

use Outboard\Mvc\Rule;

/** The number of characters of a string, or of entries of a list. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Length implements Rule
{
    public function __construct(private readonly int $min = 0, private readonly int $max = PHP_INT_MAX)
    {
    }

    public function check(mixed $value): ?string
    {
        // Invalid UTF-8 has no characters.
        // @mago-expect analysis:too-few-arguments - the matches may be left out
        $length = is_array($value) ? count($value) : preg_match_all('~.~su', (string) $value);
        return match (true) {
            $length === false => 'is not UTF-8',
            $length < $this->min => $this->min === 1 ? 'is empty' : "is shorter than $this->min",
            $length > $this->max => "is longer than $this->max",
            default => null,
        };
    }
}
