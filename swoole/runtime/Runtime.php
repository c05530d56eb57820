<?php

namespace Swoole;

/** The hooks of PHP's functions, which wait without holding the worker in any case. */
class Runtime
{
    private static int $flags = SWOOLE_HOOK_ALL;

    /** PHP's own functions wait without holding the worker in any case. */
    public static function enableCoroutine(bool|int $enable = true, int $flags = SWOOLE_HOOK_ALL): bool
    {
        self::$flags = is_int($enable) ? $enable : ($enable ? $flags : 0);
        return true;
    }

    public static function getHookFlags(): int
    {
        return self::$flags;
    }

    public static function setHookFlags(int $flags): bool
    {
        self::$flags = $flags;
        return true;
    }
}
