<?php

declare(strict_types=1);

namespace Outboard;

/** Runs each task in a coroutine of the current request. */
final class HostTasks implements Tasks
{
    public function concurrently(array $tasks, int $limit = 0): array
    {
        return concurrently($tasks, $limit);
    }
}
