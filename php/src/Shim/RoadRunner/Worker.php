<?php

declare(strict_types=1);

namespace Outboard\Shim\RoadRunner;

/** The part of Spiral\RoadRunner\Worker that HTTP loops use. */
final class Worker
{
    public static function create(): self
    {
        return new self();
    }

    /** Responds to the current request with 500, and logs the reason. */
    public function error(string $error): void
    {
        \Outboard\log("the worker reports: $error", LOG_ERR);
        http_response_code(500);
    }

    /** The loop ends when waitRequest() returns null. */
    public function stop(): void
    {
    }
}
