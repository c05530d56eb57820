<?php

declare(strict_types=1);

namespace Outboard\Shim\RoadRunner;

/** Runs a script that pulls requests in a loop, in a server that pushes them by calls. */
final class Loop
{
    private function __construct()
    {
    }

    public static function run(string $script): void
    {
        $loop = new \Fiber(static function () use ($script): void {
            require $script;
        });
        $loop->start();
        while (!$loop->isTerminated() && \Outboard\handle_request(static fn () => $loop->resume(true))) {
            continue;
        }
        if (!$loop->isTerminated()) {
            // RoadRunner's signal for the end of requests.
            $loop->resume(null);
        }
    }
}
