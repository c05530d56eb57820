<?php

declare(strict_types=1);

namespace Outboard;

/**
 * Where requests come from and answers go to: what a worker script asks of its server.
 *
 * Runtimes::here() gives the one of this process; tests use Testing\FakeRuntime.
 */
interface Runtime
{
    /** Whether the script stays for further requests. */
    public function isWorker(): bool;

    /**
     * Has the handler answer requests, from the superglobals, body() and by output().
     *
     * True when the script is to call again. With a concurrency above one a single call answers
     * many requests, so what belongs to a request goes into the handler and into defer().
     *
     * @param callable(): void $handler
     */
    public function handleRequest(callable $handler): bool;

    /** With isolation "fork": what is above this call is done once, what is below once a request. */
    public function snapshot(): void;

    /**
     * The body of the request that is being answered.
     *
     * @return resource
     */
    public function body();

    /** Where the answer to the present request goes. */
    public function output(): Output;

    /**
     * Calls once the answer to the present request has left.
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
