<?php

declare(strict_types=1);

namespace Outboard;

/** Runs tasks that wait, at the same time where that is possible. */
interface Tasks
{
    /**
     * Runs all tasks and gives their results under the same keys, in the same order. The first
     * exception is thrown once all of them have ended.
     *
     * @template TKey of array-key
     * @template T
     * @param array<TKey, callable(): T> $tasks
     * @return array<TKey, T>
     */
    public function concurrently(array $tasks, int $limit = 0): array;
}
