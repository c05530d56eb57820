<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** An attribute of a parameter that says which values it takes. */
interface Rule
{
    /** What is wrong, after the field's name: "is too long"; null when nothing is. */
    public function check(mixed $value): ?string;
}
