<?php

declare(strict_types=1);

namespace Outboard;

/** Runs tasks that wait, concurrently if possible. */
interface Tasks
{
    /**
     * Runs all tasks and returns their results under the same keys, in the same order. The first exception is
     * thrown after all of them have ended.
     *
     * @template TKey of array-key
     * @template T
     * @param array<TKey, callable(): T> $tasks
     * @return array<TKey, T>
     */
    public function concurrently(array $tasks, int $limit = 0): array;
}
