<?php

declare(strict_types=1);

namespace Outboard;

/**
 * A worker script's interface to its server.
 *
 * Runtimes::here() returns that of this process; tests use Testing\FakeRuntime.
 */
interface Runtime
{
    /** Whether the script handles several requests. */
    public function isWorker(): bool;

    /**
     * Has the handler process requests, with the superglobals, body() and output().
     *
     * True if the script is to call again. With a concurrency above one a single call handles many requests, so
     * per-request state belongs into the handler and into defer().
     *
     * @param callable(): void $handler
     */
    public function handleRequest(callable $handler): bool;

    /** With isolation "rewind": code before this call runs once, code after it once per request. */
    public function snapshot(): void;

    /**
     * The body of the current request.
     *
     * @return resource
     */
    public function body();

    /** The response to the current request. */
    public function output(): Output;

    /**
     * Calls back after the response to the current request was sent.
     *
     * @param callable(): void $callback
     */
    public function defer(callable $callback): void;

    /**
     * Writes a line to the server's error log; levels are those of syslog().
     *
     * @param array<string, mixed> $context
     */
    public function log(string $message, int $level = LOG_INFO, array $context = []): void;
}
