<?php

declare(strict_types=1);

namespace Outboard\Shim\Swoole;

/** Swoole\Timer. Times are in milliseconds. */
final class Timer
{
    /** @var array<int, \Outboard\Timer> */
    private static array $timers = [];

    private static int $last = 0;

    public static function tick(int $milliseconds, callable $callback, mixed ...$arguments): int
    {
        $id = ++self::$last;
        $call = static fn (): mixed => $callback($id, ...$arguments);
        self::$timers[$id] = \Outboard\every($milliseconds / 1000, $call);
        return $id;
    }

    public static function after(int $milliseconds, callable $callback, mixed ...$arguments): int
    {
        $id = ++self::$last;
        self::$timers[$id] = \Outboard\after($milliseconds / 1000, static function () use ($id, $callback, $arguments): void {
            unset(self::$timers[$id]);
            $callback(...$arguments);
        });
        return $id;
    }

    public static function clear(int $id): bool
    {
        $timer = self::$timers[$id] ?? null;
        $timer?->cancel();
        unset(self::$timers[$id]);
        return $timer !== null;
    }
}
