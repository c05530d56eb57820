<?php

namespace Outboard\Engine\Swoole;

use Swoole\Coroutine\Socket;

/** @internal connects a client, through a proxy where its options name one (RFC 9110, 9.3.6; RFC 1928, 1929) */
final class Proxy
{
    public static function connect(Socket $socket, array $setting, string $host, int $port, float $timeout): bool
    {
        if (isset($setting['socks5_host'])) {
            return $socket->connect($setting['socks5_host'], (int) ($setting['socks5_port'] ?? 1080), $timeout)
                && self::askSocks($socket, $setting, $host, $port, $timeout);
        }
        if (isset($setting['http_proxy_host'])) {
            $target = str_contains($host, ':') ? "[$host]:$port" : "$host:$port";
            return $socket->connect($setting['http_proxy_host'], (int) ($setting['http_proxy_port'] ?? 8080), $timeout)
                && self::askHttp($socket, $setting, $target, $timeout);
        }
        return $socket->connect($host, $port, $timeout);
    }

    private static function askHttp(Socket $socket, array $setting, string $target, float $timeout): bool
    {
        $socket->sendAll("CONNECT $target HTTP/1.1\r\nHost: $target\r\n" . self::authorization($setting) . "\r\n", $timeout);
        $head = '';
        while (!str_ends_with($head, "\r\n\r\n") && strlen($head) < 16384) {
            $line = $socket->readTo("\n", 8192, $timeout);
            if ($line === false || $line === '') {
                return self::fail($socket, SWOOLE_ERROR_HTTP_PROXY_HANDSHAKE_ERROR);
            }
            $head .= $line;
        }
        return preg_match('~^HTTP/1\.[01] 2\d\d~', $head) === 1 || self::fail($socket, SWOOLE_ERROR_HTTP_PROXY_BAD_RESPONSE);
    }

    /** The line for a proxy that wants a password, or nothing. */
    public static function authorization(array $setting): string
    {
        $user = $setting['http_proxy_user'] ?? $setting['http_proxy_username'] ?? null;
        return $user === null ? '' : 'Proxy-Authorization: Basic ' . base64_encode($user . ':' . ($setting['http_proxy_password'] ?? '')) . "\r\n";
    }

    private static function askSocks(Socket $socket, array $setting, string $host, int $port, float $timeout): bool
    {
        $user = (string) ($setting['socks5_username'] ?? '');
        $socket->sendAll($user === '' ? "\5\1\0" : "\5\1\2", $timeout);
        $answer = $socket->recvAll(2, $timeout);
        if ($answer !== "\5\0" && $answer !== "\5\2") {
            return self::fail($socket, SWOOLE_ERROR_SOCKS5_UNSUPPORT_METHOD);
        }
        if ($answer === "\5\2") {
            $password = (string) ($setting['socks5_password'] ?? '');
            $socket->sendAll("\1" . chr(strlen($user)) . $user . chr(strlen($password)) . $password, $timeout);
            if ($socket->recvAll(2, $timeout) !== "\1\0") {
                return self::fail($socket, SWOOLE_ERROR_SOCKS5_AUTH_FAILED);
            }
        }
        $binary = @inet_pton($host);
        $address = match (is_string($binary) ? strlen($binary) : 0) {
            4 => "\1$binary",
            16 => "\4$binary",
            default => "\3" . chr(strlen($host)) . $host,
        };
        $socket->sendAll("\5\1\0$address" . pack('n', $port), $timeout);
        $head = $socket->recvAll(4, $timeout);
        if (!is_string($head) || strlen($head) < 4 || $head[1] !== "\0") {
            return self::fail($socket, SWOOLE_ERROR_SOCKS5_SERVER_ERROR);
        }
        $length = match ($head[3]) {
            "\1" => 4,
            "\4" => 16,
            default => ord((string) $socket->recvAll(1, $timeout)),
        };
        return $socket->recvAll($length + 2, $timeout) !== false;
    }

    private static function fail(Socket $socket, int $code): bool
    {
        $socket->errCode = $code;
        $socket->errMsg = error_text($code);
        return false;
    }
}
