<?php

declare(strict_types=1);

namespace App;

/**
 * The kind of class that no worker is safe with: it stores what a visitor has put there in a static
 * variable. In a worker the next visitor would find it; after a rewind it is empty.
 */
final class Basket
{
    /** @var list<string> */
    private static array $things = [];

    /** @return list<string> */
    public static function with(string $thing): array
    {
        self::$things[] = $thing;
        return self::$things;
    }
}
