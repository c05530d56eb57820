<?php

declare(strict_types=1);

namespace Outboard\Shim\RoadRunner;

/** Spiral\RoadRunner\Worker, as far as HTTP loops use it. */
final class Worker
{
    public static function create(): self
    {
        return new self();
    }

    /** Answers the present request with 500, and keeps the reason to the log. */
    public function error(string $error): void
    {
        \Outboard\log("the worker reports: $error", LOG_ERR);
        http_response_code(500);
    }

    /** The loop ends by itself when waitRequest() gives null. */
    public function stop(): void
    {
    }
}
