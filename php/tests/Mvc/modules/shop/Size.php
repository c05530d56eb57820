<?php

declare(strict_types=1);

namespace shop;

enum Size: string
{
    case Small = 's';
    case Large = 'l';
}
