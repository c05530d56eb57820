<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

class Timer
{
    /** @var array<int, array{timer: \Outboard\Timer, ms: int, again: bool, due: float, rounds: int}> */
    private static array $timers = [];

    private static int $last = 0;

    public static function set(array $settings): bool
    {
        return true;
    }

    public static function tick(int $ms, callable $callback, mixed ...$params): int|false
    {
        return self::add($ms, true, static fn (int $id): mixed => $callback($id, ...$params));
    }

    public static function after(int $ms, callable $callback, mixed ...$params): int|false
    {
        return self::add($ms, false, static fn (int $id): mixed => $callback(...$params));
    }

    public static function exists(int $timer_id): bool
    {
        return isset(self::$timers[$timer_id]);
    }

    public static function info(int $timer_id): ?array
    {
        $timer = self::$timers[$timer_id] ?? null;
        return $timer === null ? null : [
            'exec_msec' => (int) (($timer['due'] - microtime(true)) * 1000),
            'exec_count' => $timer['rounds'],
            'interval' => $timer['again'] ? $timer['ms'] : 0,
            'round' => $timer['rounds'],
            'removed' => false,
        ];
    }

    public static function stats(): array
    {
        return ['initialized' => self::$timers !== [], 'num' => count(self::$timers), 'round' => 0];
    }

    public static function list(): Timer\Iterator
    {
        return new Timer\Iterator(array_keys(self::$timers));
    }

    public static function clear(int $timer_id): bool
    {
        $timer = self::$timers[$timer_id] ?? null;
        $timer === null ?: $timer['timer']->cancel();
        unset(self::$timers[$timer_id]);
        return $timer !== null;
    }

    public static function clearAll(): bool
    {
        array_map(self::clear(...), array_keys(self::$timers));
        return true;
    }

    /** @internal in a child: those of its parent do not run here */
    public static function forget(): void
    {
        self::$timers = [];
    }

    private static function add(int $ms, bool $again, \Closure $call): int|false
    {
        if ($ms < 1 || $ms > 86400000) {
            trigger_error('Timer must be greater than or equal to 1 and less than 86400000', E_USER_WARNING);
            return false;
        }
        $id = ++self::$last;
        $run = static function () use ($id, $again, $ms, $call): void {
            if ($again) {
                self::$timers[$id]['rounds']++;
                self::$timers[$id]['due'] = microtime(true) + $ms / 1000;
            } else {
                unset(self::$timers[$id]);
            }
            Engine\create($call, $id);
        };
        $timer = new \Outboard\Timer($ms / 1000, $run, $again);
        self::$timers[$id] = ['timer' => $timer, 'ms' => $ms, 'again' => $again, 'due' => microtime(true) + $ms / 1000, 'rounds' => 0];
        return $id;
    }
}

namespace Swoole\Timer;

class Iterator extends \ArrayIterator
{
}
