<?php

namespace Outboard;

const VERSION = '%VERSION%';

function request(): ?Request
{
    return Engine\request_number() === 0 ? null : new Request();
}

function spawn(callable $task, mixed ...$arguments): Coroutine
{
    return new Coroutine($task, $arguments);
}

function await(Coroutine $coroutine, Coroutine ...$more): mixed
{
    if ($more === []) {
        return $coroutine->await();
    }
    return Engine\await_all([$coroutine, ...array_values($more)]);
}

function concurrently(array $tasks, int $limit = 0): array
{
    if ($limit <= 0 || $limit >= count($tasks)) {
        return Engine\await_all(array_map(static fn (callable $task) => new Coroutine($task, []), $tasks));
    }
    $keys = array_keys($tasks);
    $results = array_fill_keys($keys, null);
    $next = 0;
    $work = static function () use (&$next, &$results, $keys, $tasks): void {
        while ($next < count($keys)) {
            $key = $keys[$next++];
            $results[$key] = $tasks[$key]();
        }
    };
    Engine\await_all(array_map(static fn () => new Coroutine($work, []), range(1, $limit)));
    return $results;
}

function sleep(float $seconds): void
{
    Engine\sleep($seconds);
}

function after(float $seconds, callable $callback): Timer
{
    return new Timer($seconds, $callback, false);
}

function every(float $seconds, callable $callback): Timer
{
    if ($seconds <= 0) {
        throw new \ValueError('Outboard\every(): Argument #1 ($seconds) must be greater than 0');
    }
    return new Timer($seconds, $callback, true);
}

function defer(callable $callback): void
{
    Engine\defer($callback);
}

function log(string $message, int $level = LOG_INFO, array $context = []): void
{
    $facts = $context === []
        ? ''
        : ' ' . json_encode($context, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PARTIAL_OUTPUT_ON_ERROR);
    Engine\log($message . $facts, $level);
}
