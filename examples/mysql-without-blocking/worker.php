<?php

/**
 * PDO and mysqli as ever, no other driver: while a query runs, the process handles other requests.
 * Every coroutine has a connection of its own; a connection serves one at a time.
 */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

const SLOW = 'SELECT SLEEP(0.3) AS slept, CONNECTION_ID() AS connection';

Outboard\serve(static function (Request $request): Response {
    $start = hrtime(true);
    $rows = match ($request->path()) {
        '/pdo' => [byPdo(SLOW)],
        '/mysqli' => [byMysqli(SLOW)],
        '/four' => Outboard\concurrently(array_fill(0, 4, static fn (): array => byPdo(SLOW))),
        '/quick' => [],
        default => null,
    };
    if ($rows === null) {
        return Response::text("Try /pdo, /mysqli, /four, /quick.\n", $request->path() === '/' ? 200 : 404);
    }
    return Response::json(['worker' => getmypid(), 'took_ms' => intdiv(hrtime(true) - $start, 1_000_000), 'rows' => $rows]);
});

/** @return array<string, mixed> */
function byPdo(string $query): array
{
    $database = new PDO('mysql:unix_socket=' . setting('MYSQL_SOCKET'), setting('MYSQL_USER'), setting('MYSQL_PASSWORD'));
    $row = $database->query($query)->fetch(PDO::FETCH_ASSOC);
    return is_array($row) ? $row : [];
}

/** @return array<string, mixed> */
function byMysqli(string $query): array
{
    $database = new mysqli(null, setting('MYSQL_USER'), setting('MYSQL_PASSWORD'), null, null, setting('MYSQL_SOCKET'));
    $result = $database->query($query);
    return $result instanceof mysqli_result ? $result->fetch_assoc() ?? [] : [];
}

function setting(string $name): string
{
    $defaults = ['MYSQL_SOCKET' => '/run/mysqld/mysqld.sock', 'MYSQL_USER' => get_current_user(), 'MYSQL_PASSWORD' => ''];
    return getenv($name) ?: $defaults[$name];
}
