<?php

declare(strict_types=1);

namespace Outboard\Testing;

use Outboard\Output;
use Outboard\Runtime;

/**
 * Feeds requests to a worker script in plain PHP, and records the responses.
 *
 * header() and headers_list() do nothing on PHP's command line, so of a handler that uses echo only the body
 * and the status of http_response_code() are recorded.
 */
final class FakeRuntime implements Runtime
{
    /** @var list<FakeResponse> */
    public array $responses = [];

    /** @var list<array{message: string, level: int, context: array<string, mixed>}> */
    public array $lines = [];

    public int $snapshots = 0;

    /** @var list<FakeRequest> */
    private array $requests;

    private ?FakeRequest $request = null;

    private ?FakeResponse $response = null;

    /** @var list<callable(): void> */
    private array $deferred = [];

    public function __construct(FakeRequest ...$requests)
    {
        $this->requests = array_values($requests);
    }

    public function isWorker(): bool
    {
        return true;
    }

    public function handleRequest(callable $handler): bool
    {
        $request = array_shift($this->requests);
        if ($request === null) {
            return false;
        }
        $this->responses[] = $this->response = $response = new FakeResponse();
        $this->request = $request;
        $request->import();
        http_response_code(200);
        ob_start(static function (string $echoed) use ($response): string {
            $response->write($echoed);
            return '';
        });
        try {
            $handler();
        } finally {
            ob_end_flush();
            $this->request = null;
            $this->response = null;
            $this->finish($response);
        }
        return true;
    }

    public function snapshot(): void
    {
        $this->snapshots++;
    }

    public function body()
    {
        return ($this->request ?? throw new \LogicException('there is no current request'))->open();
    }

    public function output(): Output
    {
        return $this->response ?? throw new \LogicException('there is no current request');
    }

    public function defer(callable $callback): void
    {
        $this->deferred[] = $callback;
    }

    public function log(string $message, int $level = LOG_INFO, array $context = []): void
    {
        $this->lines[] = ['message' => $message, 'level' => $level, 'context' => $context];
    }

    private function finish(FakeResponse $response): void
    {
        if ($response->status === 200) {
            $status = http_response_code();
            $response->status = is_int($status) ? $status : 200;
        }
        while (($callback = array_shift($this->deferred)) !== null) {
            $callback();
        }
    }
}
