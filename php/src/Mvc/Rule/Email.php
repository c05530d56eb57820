<?php

declare(strict_types=1);

namespace Outboard\Mvc\Rule;

use Outboard\Mvc\Rule;

/** A valid email address; whether it exists is not checked. */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Email implements Rule
{
    public function check(mixed $value): ?string
    {
        return filter_var($value, FILTER_VALIDATE_EMAIL) === false ? 'is not an e-mail address' : null;
    }
}
