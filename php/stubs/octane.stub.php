<?php

/** What the package implements of laravel/octane, which Debian does not have. For static analysers; never loaded by PHP. */

namespace Laravel\Octane\Contracts;

interface DispatchesTasks
{
    /**
     * @param array<array-key, callable(): mixed> $tasks
     * @return array<array-key, mixed>
     */
    public function resolve(array $tasks, int $waitMilliseconds = 1): array;

    /** @param array<array-key, callable(): mixed> $tasks */
    public function dispatch(array $tasks): void;
}
