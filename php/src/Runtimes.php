<?php

declare(strict_types=1);

namespace Outboard;

/** Selects the runtime of this process. */
final class Runtimes
{
    private function __construct()
    {
    }

    public static function here(): Runtime
    {
        // After a snapshot the request exists already, and only that one is handled.
        $worker = \function_exists('Outboard\is_worker') && is_worker() && request() === null;
        return $worker ? new WorkerRuntime() : new SingleRuntime();
    }
}
