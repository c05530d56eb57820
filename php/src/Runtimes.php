<?php

declare(strict_types=1);

namespace Outboard;

/** Finds the runtime of this process. */
final class Runtimes
{
    private function __construct()
    {
    }

    public static function here(): Runtime
    {
        // Below a snapshot the request is there already: what is left to do is to answer that one.
        $worker = \function_exists('Outboard\is_worker') && is_worker() && request() === null;
        return $worker ? new WorkerRuntime() : new SingleRuntime();
    }
}
