<?php

declare(strict_types=1);

namespace Outboard;

/**
 * The one request of an ordinary PHP process: php-fpm, Apache, Outboard's classic mode, after a snapshot. With
 * it a worker script can be the front controller everywhere.
 */
final class SingleRuntime implements Runtime
{
    private readonly Output $output;

    private bool $handled = false;

    /** @var list<callable(): void> */
    private array $deferred = [];

    public function __construct()
    {
        $this->output = new SapiOutput();
    }

    public function isWorker(): bool
    {
        return false;
    }

    public function handleRequest(callable $handler): bool
    {
        if (!$this->handled) {
            $this->handled = true;
            try {
                $handler();
            } finally {
                $this->finish();
            }
        }
        return false;
    }

    public function snapshot(): void
    {
        if (\function_exists('Outboard\snapshot')) {
            snapshot();
        }
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
        $this->deferred[] = $callback;
    }

    public function log(string $message, int $level = LOG_INFO, array $context = []): void
    {
        $flags = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PARTIAL_OUTPUT_ON_ERROR;
        error_log($context === [] ? $message : "$message " . (string) json_encode($context, $flags));
    }

    private function finish(): void
    {
        if ($this->deferred !== [] && \function_exists('fastcgi_finish_request')) {
            fastcgi_finish_request();
        }
        while (($callback = array_shift($this->deferred)) !== null) {
            $callback();
        }
    }
}
