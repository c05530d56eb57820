<?php

declare(strict_types=1);

namespace Outboard\Testing;

use Outboard\Output;
use Outboard\Runtime;

/**
 * Feeds requests to a worker script in plain PHP, and keeps the answers.
 *
 * header() and headers_list() do nothing in PHP's command line, so of a handler that answers by
 * echo only the body and the status of http_response_code() are seen.
 */
final class FakeRuntime implements Runtime
{
    /** @var list<FakeAnswer> */
    public array $answers = [];

    /** @var list<array{message: string, level: int, context: array<string, mixed>}> */
    public array $lines = [];

    public int $snapshots = 0;

    /** @var list<FakeRequest> */
    private array $requests;

    private ?FakeRequest $request = null;

    private ?FakeAnswer $answer = null;

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
        $this->answers[] = $this->answer = $answer = new FakeAnswer();
        $this->request = $request;
        $request->import();
        http_response_code(200);
        ob_start(static function (string $echoed) use ($answer): string {
            $answer->write($echoed);
            return '';
        });
        try {
            $handler();
        } finally {
            ob_end_flush();
            $this->request = null;
            $this->answer = null;
            $this->finish($answer);
        }
        return true;
    }

    public function snapshot(): void
    {
        $this->snapshots++;
    }

    public function body()
    {
        return ($this->request ?? throw new \LogicException('no request is being answered'))->open();
    }

    public function output(): Output
    {
        return $this->answer ?? throw new \LogicException('no request is being answered');
    }

    public function defer(callable $callback): void
    {
        $this->deferred[] = $callback;
    }

    public function log(string $message, int $level = LOG_INFO, array $context = []): void
    {
        $this->lines[] = ['message' => $message, 'level' => $level, 'context' => $context];
    }

    private function finish(FakeAnswer $answer): void
    {
        if ($answer->status === 200) {
            $status = http_response_code();
            $answer->status = is_int($status) ? $status : 200;
        }
        while (($callback = array_shift($this->deferred)) !== null) {
            $callback();
        }
    }
}
