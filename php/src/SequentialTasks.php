<?php

declare(strict_types=1);

namespace Outboard;

/** Runs tasks one after the other: for PHP without coroutines, and for tests. */
final class SequentialTasks implements Tasks
{
    public function concurrently(array $tasks, int $limit = 0): array
    {
        $results = [];
        $failure = null;
        foreach ($tasks as $key => $task) {
            try {
                $results[$key] = $task();
            } catch (\Throwable $thrown) {
                $failure ??= $thrown;
            }
        }
        return $failure === null ? $results : throw $failure;
    }
}
