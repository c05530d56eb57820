<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** An attribute that restricts the values of a parameter. */
interface Rule
{
    /** The error, after the field's name: "is too long"; null if the value is valid. */
    public function check(mixed $value): ?string;
}
