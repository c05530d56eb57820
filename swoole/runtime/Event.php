<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

/** Descriptors that a program watches itself: each is a coroutine that waits for it. */
class Event
{
    /** @var array<int, array{socket: mixed, read: ?callable, write: ?callable, events: int, cid: int}> */
    private static array $watched = [];

    /** @var callable|null */
    private static $cycle = null;

    public static function add(mixed $fd, ?callable $read_callback = null, ?callable $write_callback = null, int $events = SWOOLE_EVENT_READ): int|false
    {
        $number = Engine\descriptor($fd);
        if ($number < 0 || isset(self::$watched[$number])) {
            return false;
        }
        self::$watched[$number] = ['socket' => $fd, 'read' => $read_callback, 'write' => $write_callback, 'events' => $events, 'cid' => 0];
        $cid = Engine\create(static function () use ($number): void {
            // One that is always ready is called once in each round of the loop.
            while (Engine\wait(0.0) === 0 && isset(self::$watched[$number])) {
                $one = self::$watched[$number];
                $ready = Engine\wait_descriptor($one['socket'], $one['events'], -1.0);
                if (!isset(self::$watched[$number])) {
                    return;
                }
                if ($ready & SWOOLE_EVENT_READ && $one['read'] !== null) {
                    ($one['read'])($one['socket']);
                }
                if ($ready & SWOOLE_EVENT_WRITE && isset(self::$watched[$number]) && $one['write'] !== null) {
                    ($one['write'])($one['socket']);
                }
            }
        });
        if (isset(self::$watched[$number])) {
            self::$watched[$number]['cid'] = $cid;
        }
        return $number;
    }

    public static function set(mixed $fd, ?callable $read_callback = null, ?callable $write_callback = null, int $events = 0): bool
    {
        $number = Engine\descriptor($fd);
        if (!isset(self::$watched[$number])) {
            return false;
        }
        $one = self::$watched[$number];
        self::del($fd);
        return self::add($fd, $read_callback ?? $one['read'], $write_callback ?? $one['write'], $events ?: $one['events']) !== false;
    }

    public static function del(mixed $fd): bool
    {
        $number = Engine\descriptor($fd);
        if (!isset(self::$watched[$number])) {
            return false;
        }
        $cid = self::$watched[$number]['cid'];
        unset(self::$watched[$number]);
        Engine\cancel($cid);
        return true;
    }

    public static function isset(mixed $fd, int $events = SWOOLE_EVENT_READ | SWOOLE_EVENT_WRITE): bool
    {
        $number = Engine\descriptor($fd);
        return isset(self::$watched[$number]) && (self::$watched[$number]['events'] & $events) !== 0;
    }

    public static function write(mixed $fd, string $data): bool
    {
        return fwrite($fd, $data) === strlen($data);
    }

    public static function defer(callable $callback): bool
    {
        \Outboard\Engine\spawn($callback, static fn () => null);
        return true;
    }

    public static function cycle(?callable $callback, bool $before = false): bool
    {
        self::$cycle = $callback;
        return true;
    }

    public static function wait(): void
    {
        Engine\run();
    }

    /** One round of the loop. */
    public static function dispatch(): bool
    {
        Engine\wait(0.0);
        return true;
    }

    public static function rshutdown(): void
    {
        self::wait();
    }

    public static function exit(): void
    {
        foreach (self::$watched as $one) {
            self::del($one['socket']);
        }
        Timer::clearAll();
    }
}
