<?php

namespace Swoole\Coroutine;

use Swoole\Coroutine;

function batch(array $tasks, float $timeout = -1): array
{
    $group = new WaitGroup(count($tasks));
    foreach ($tasks as $key => $task) {
        $tasks[$key] = null;
        Coroutine::create(static function () use ($group, &$tasks, $key, $task): void {
            try {
                $tasks[$key] = $task();
            } finally {
                $group->done();
            }
        });
    }
    $group->wait($timeout);
    return $tasks;
}

function parallel(int $n, callable $fn): void
{
    $group = new WaitGroup($n);
    for ($i = 0; $i < $n; $i++) {
        Coroutine::create(static function () use ($group, $fn): void {
            try {
                $fn();
            } finally {
                $group->done();
            }
        });
    }
    $group->wait();
}

function map(array $list, callable $fn, float $timeout = -1): array
{
    return batch(array_map(static fn (mixed $value): \Closure => static fn (): mixed => $fn($value), $list), $timeout);
}

namespace Co;

function go(callable $func, mixed ...$params): int|false
{
    return \Swoole\Coroutine::create($func, ...$params);
}

function defer(callable $callback): void
{
    \Swoole\Coroutine::defer($callback);
}

function batch(array $tasks, float $timeout = -1): array
{
    return \Swoole\Coroutine\batch($tasks, $timeout);
}

function parallel(int $n, callable $fn): void
{
    \Swoole\Coroutine\parallel($n, $fn);
}

function map(array $list, callable $fn, float $timeout = -1): array
{
    return \Swoole\Coroutine\map($list, $fn, $timeout);
}
