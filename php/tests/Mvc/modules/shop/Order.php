<?php

declare(strict_types=1);

namespace shop;

use Outboard\Mvc\Input;
use Outboard\Mvc\Rule;

final class Order implements Input
{
    public function __construct(
        #[Rule\Length(1, 5)] public readonly string $name,
        #[Rule\Range(1, 9)] public readonly int $pieces,
        #[Rule\Email] public readonly string $email = 'a@b.example',
        public readonly ?Size $size = null,
    ) {
    }
}
