<?php

/**
 * Plain-PHP functions of Outboard\Engine, on which the server's PHP part (server/php/php-host/runtime) is built:
 * they read the superglobals that Testing\FakeRequest sets, so that tests can use the real Outboard\Request.
 */

declare(strict_types=1);

namespace Outboard\Engine;

function request_number(): int
{
    return 1;
}

function field(int $number, int $which): string
{
    return match ($which) {
        0 => $_SERVER['REQUEST_METHOD'],
        2 => $_SERVER['QUERY_STRING'],
        8 => $_SERVER['SERVER_PROTOCOL'],
        10 => $_SERVER['REMOTE_ADDR'],
        12 => $_SERVER['SERVER_NAME'],
        13 => $_SERVER['REQUEST_SCHEME'],
        default => 'id',
    };
}

function target(int $number): string
{
    return $_SERVER['REQUEST_URI'];
}

function path(int $number): string
{
    return strtok(target($number), '?') ?: '/';
}

function header(int $number, string $name): ?string
{
    $key = strtoupper(strtr($name, '-', '_'));
    $value = $_SERVER["HTTP_$key"] ?? $_SERVER[$key] ?? null;
    return is_string($value) ? $value : null;
}

/** The logged lines. */
final class Log
{
    /** @var list<string> */
    private static array $lines = [];

    public static function add(string $line): void
    {
        self::$lines[] = $line;
    }

    /** @return list<string> the lines since the last time */
    public static function take(): array
    {
        [$lines, self::$lines] = [self::$lines, []];
        return $lines;
    }
}

namespace Outboard;

/** @param array<string, mixed> $context */
function log(string $message, int $level = LOG_INFO, array $context = []): void
{
    Engine\Log::add($message);
}

$runtime = dirname(__DIR__, 2) . '/server/php/php-host/runtime';
require "$runtime/Request.php";
require "$runtime/Response.php";
