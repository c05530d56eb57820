<?php

declare(strict_types=1);

namespace Outboard\Laravel;

use Laravel\Octane\Contracts\DispatchesTasks;

/**
 * Octane::concurrently() with coroutines of the current request: its tasks wait for databases and servers,
 * which needs no other processes.
 */
final class Dispatcher implements DispatchesTasks
{
    /**
     * @param array<array-key, callable(): mixed> $tasks
     * @return array<array-key, mixed>
     */
    public function resolve(array $tasks, int $waitMilliseconds = 1): array
    {
        return \Outboard\concurrently($tasks);
    }

    /** @param array<array-key, callable(): mixed> $tasks */
    public function dispatch(array $tasks): void
    {
        foreach ($tasks as $task) {
            \Outboard\after(0.0, $task);
        }
    }
}
