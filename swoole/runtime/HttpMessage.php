<?php

namespace Outboard\Engine\Swoole;

use Swoole\Coroutine\Socket;

/** @internal reads messages of HTTP/1.1 (RFC 9112) from a socket; of a client and of Coroutine\Http\Server */
final class HttpMessage
{
    private const HEAD_LIMIT = 65536;

    public string $startLine = '';

    /** @var array<string, string|list<string>> by name in lower case */
    public array $headers = [];

    public string $body = '';

    /** Why reading has failed: the error of the socket, or that of the message. */
    public int $errCode = 0;

    /** Whether the end of the body is the end of the connection. */
    public bool $endsWithConnection = false;

    private readonly float $until;

    /** The time is that of the whole message; below 0 there is no limit. */
    public function __construct(private readonly Socket $socket, private readonly int $limit, float $timeout)
    {
        $this->until = $timeout > 0 ? microtime(true) + $timeout : INF;
    }

    private function left(): float
    {
        return $this->until === INF ? -1.0 : max($this->until - microtime(true), 0.000001);
    }

    /** True: a head was read; false: the connection ended before one, or the error is in errCode. */
    public function readHead(): bool
    {
        $head = '';
        do {
            $line = $this->line();
            if ($line === null) {
                return false;
            }
            $head .= $line === '' && $head === '' ? '' : "$line\n";
            if (strlen($head) > self::HEAD_LIMIT) {
                return $this->fail(SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            }
        } while ($line !== '' || $head === '');
        $lines = explode("\n", rtrim($head, "\n"));
        $this->startLine = array_shift($lines);
        $this->headers = [];
        foreach ($lines as $line) {
            $colon = strpos($line, ':');
            if (!$colon || strcspn($line, " \t") < $colon) {
                $this->errCode = SWOOLE_ERROR_HTTP_INVALID_PROTOCOL;
                return false;
            }
            $name = strtolower(substr($line, 0, $colon));
            $value = trim(substr($line, $colon + 1), " \t");
            $this->headers[$name] = isset($this->headers[$name]) ? array_merge((array) $this->headers[$name], [$value]) : $value;
        }
        return true;
    }

    /**
     * Reads the body that the head announces; $isResponse: without a length it ends with the connection.
     * $take gets the pieces, or they become $body.
     */
    public function readBody(bool $isResponse, ?\Closure $take = null): bool
    {
        $this->body = '';
        $take ??= function (string $piece): bool {
            $this->body .= $piece;
            return strlen($this->body) <= $this->limit;
        };
        $coding = $this->headers['transfer-encoding'] ?? null;
        $length = $this->headers['content-length'] ?? null;
        if ($coding !== null) {
            // Both lengths at once are how requests are smuggled (RFC 9112, 6.3).
            if (!is_string($coding) || strcasecmp($coding, 'chunked') !== 0 || $length !== null && !$isResponse) {
                return $this->fail(SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            }
            return $this->readChunks($take);
        }
        if ($length !== null) {
            if (!is_string($length) || !preg_match('/^\d{1,18}$/', $length)) {
                return $this->fail(SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            }
            if ((int) $length > $this->limit && !$isResponse) {
                return $this->fail(SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
            }
            return $this->readLength((int) $length, $take);
        }
        if (!$isResponse) {
            return true;
        }
        $this->endsWithConnection = true;
        while (($piece = $this->socket->recv(65536, $this->left())) !== '') {
            if ($piece === false) {
                return $this->fail($this->socket->errCode);
            }
            if (!$take($piece)) {
                return $this->fail(SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
            }
        }
        return true;
    }

    private function readLength(int $left, \Closure $take): bool
    {
        while ($left > 0) {
            $piece = $this->socket->recvWithBuffer(min($left, 65536), $this->left());
            if ($piece === false || $piece === '') {
                return $this->fail($piece === '' ? SOCKET_ECONNRESET : $this->socket->errCode);
            }
            $left -= strlen($piece);
            if (!$take($piece)) {
                return $this->fail(SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
            }
        }
        return true;
    }

    private function readChunks(\Closure $take): bool
    {
        while (($line = $this->line()) !== null) {
            if (!preg_match('/^([0-9a-f]{1,8})\s*(?:;|$)/i', $line, $found)) {
                return $this->fail(SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            }
            $size = (int) hexdec($found[1]);
            if ($size === 0) {
                return $this->readTrailer();
            }
            if (!$this->readLength($size, $take)) {
                return false;
            }
            if ($this->line() !== '') {
                return $this->fail(SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            }
        }
        return false;
    }

    private function readTrailer(): bool
    {
        while (($line = $this->line()) !== '') {
            if ($line === null) {
                return false;
            }
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $this->headers[strtolower($name)] ??= trim($value, " \t");
        }
        return true;
    }

    private function line(): ?string
    {
        $line = $this->socket->readTo("\n", self::HEAD_LIMIT, $this->left());
        if ($line === false || $line === '' || $line[-1] !== "\n") {
            $this->errCode = $line === false ? $this->socket->errCode : ($line === '' ? SOCKET_ECONNRESET : SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            return null;
        }
        return rtrim($line, "\r\n");
    }

    private function fail(int $code): false
    {
        $this->errCode = $code;
        return false;
    }
}
