<?php

declare(strict_types=1);

namespace Outboard;

/** The body of the current request. */
final class RequestBody
{
    private function __construct()
    {
    }

    /** @return resource */
    public static function open()
    {
        return fopen('php://input', 'rb') ?: throw new \RuntimeException('php://input cannot be opened');
    }
}
