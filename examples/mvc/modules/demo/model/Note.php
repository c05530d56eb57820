<?php

declare(strict_types=1);

namespace demo\model;

use Outboard\Mvc\Input;
use Outboard\Mvc\Rule\Length;

final class Note implements Input
{
    public function __construct(
        #[Length(1, 40)] public readonly string $name,
        #[Length(1, 280)] public readonly string $text,
    ) {
    }
}
