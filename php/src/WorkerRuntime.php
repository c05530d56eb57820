<?php

declare(strict_types=1);

namespace Outboard;

/** A worker of Outboard, by the functions that its PHP has. */
final class WorkerRuntime implements Runtime
{
    private readonly Output $output;

    public function __construct()
    {
        $this->output = new SapiOutput();
    }

    public function isWorker(): bool
    {
        return is_worker();
    }

    public function handleRequest(callable $handler): bool
    {
        return handle_request($handler);
    }

    public function snapshot(): void
    {
        snapshot();
    }

    public function body()
    {
        return RequestBody::open();
    }

    public function output(): Output
    {
        return $this->output;
    }

    public function defer(callable $callback): void
    {
        defer($callback);
    }

    public function log(string $message, int $level = LOG_INFO, array $context = []): void
    {
        log($message, $level, $context);
    }
}
