<?php

declare(strict_types=1);

namespace Outboard\Shim\Swoole;

/** Swoole\Http\Response. */
final class Response
{
    private bool $ended = false;

    private bool $streams = false;

    public function status(int $status, string $reason = ''): bool
    {
        $reason === '' ? http_response_code($status) : header("HTTP/1.1 $status $reason", true, $status);
        return !$this->ended;
    }

    /** @param string|list<string> $value */
    public function header(string $name, string|array $value, bool $format = true): bool
    {
        $replace = true;
        foreach ((array) $value as $one) {
            header("$name: $one", $replace);
            $replace = false;
        }
        return !$this->ended;
    }

    public function cookie(
        string $name,
        string $value = '',
        int $expires = 0,
        string $path = '/',
        string $domain = '',
        bool $secure = false,
        bool $httponly = false,
        string $samesite = '',
    ): bool {
        $options = ['expires' => $expires, 'path' => $path, 'domain' => $domain];
        return setcookie($name, $value, $options + ['secure' => $secure, 'httponly' => $httponly, 'samesite' => $samesite]);
    }

    public function redirect(string $location, int $status = 302): bool
    {
        header("Location: $location", true, $status);
        return $this->end();
    }

    /** Sends a piece at once. */
    public function write(string $piece): bool
    {
        if ($this->ended) {
            return false;
        }
        $this->streams = true;
        echo $piece;
        while (ob_get_level() > 0 && @ob_end_flush()) {
            continue;
        }
        flush();
        return connection_aborted() === 0;
    }

    public function end(?string $body = null): bool
    {
        if ($this->ended) {
            return false;
        }
        $this->ended = true;
        echo $body ?? '';
        // What the handler does after end() is not waited for, as there.
        return $this->streams || outboard_finish_request();
    }

    public function sendfile(string $path): bool
    {
        header("X-Sendfile: $path");
        return $this->end();
    }

    public function isWritable(): bool
    {
        return !$this->ended && connection_aborted() === 0;
    }

    /** @internal when the handler has returned */
    public function finish(): void
    {
        $this->ended = true;
    }
}
