<?php

/**
 * An API of notes: a pool of connections per worker, and a table that all workers share. Nothing in it
 * knows of Outboard.
 */

declare(strict_types=1);

use Swoole\Database\PDOConfig;
use Swoole\Database\PDOPool;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Swoole\Table;

const CONNECTIONS = 4;
const REQUESTS_PER_MINUTE = 1000;

// Before the server starts, so that all of its workers share it.
$clients = new Table(4096);
$clients->column('minute', Table::TYPE_INT);
$clients->column('requests', Table::TYPE_INT);
$clients->create();
$routes = new Table(64);
$routes->column('requests', Table::TYPE_INT);
$routes->column('microseconds', Table::TYPE_INT);
$routes->create();

function isAllowed(Table $clients, string $address): bool
{
    $minute = intdiv(time(), 60);
    if ($clients->get($address, 'minute') !== $minute) {
        $clients->set($address, ['minute' => $minute, 'requests' => 0]);
    }
    return $clients->incr($address, 'requests') <= REQUESTS_PER_MINUTE;
}

/** [status, body] of a request that a connection of the pool serves. */
function notes(PDO $database, string $method, ?int $id, mixed $sent): array
{
    $one = static function (int $id) use ($database): array {
        $found = $database->prepare('SELECT id, text FROM notes WHERE id = ?');
        $found->execute([$id]);
        $note = $found->fetch();
        return $note === false ? [404, ['error' => "there is no note $id"]] : [200, $note];
    };
    if ($method === 'GET') {
        return $id === null ? [200, $database->query('SELECT id, text FROM notes ORDER BY id')->fetchAll()] : $one($id);
    }
    if ($method === 'POST' && $id === null) {
        if (!is_string($sent['text'] ?? null) || $sent['text'] === '') {
            return [422, ['error' => 'text: required']];
        }
        $database->prepare('INSERT INTO notes (text) VALUES (?)')->execute([$sent['text']]);
        return [201, $one((int) $database->lastInsertId())[1]];
    }
    if ($method === 'DELETE' && $id !== null) {
        $deleted = $database->prepare('DELETE FROM notes WHERE id = ?');
        $deleted->execute([$id]);
        return $deleted->rowCount() === 1 ? [204, null] : [404, ['error' => "there is no note $id"]];
    }
    return [405, ['error' => "$method is not possible here"]];
}

$server = new Server('0.0.0.0', 9501);
$server->set(['worker_num' => 2]);
$pool = null;

$server->on('workerStart', static function () use (&$pool): void {
    $config = (new PDOConfig())
        ->withDriver('sqlite')
        ->withDbname(getenv('DATABASE') ?: __DIR__ . '/notes.sqlite')
        ->withOptions([PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC, PDO::ATTR_TIMEOUT => 10]);
    $pool = new PDOPool($config, CONNECTIONS);
    $database = $pool->get();
    $database->exec('CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)');
    $pool->put($database);
});

$server->on('request', static function (Request $request, Response $response) use (&$pool, $clients, $routes): void {
    $begun = microtime(true);
    $response->header('Content-Type', 'application/json');
    $send = static function (int $status, mixed $body) use ($response): void {
        $response->status($status);
        $response->end($status === 204 ? '' : json_encode($body) . "\n");
    };
    if (!isAllowed($clients, $request->server['remote_addr'])) {
        $response->header('Retry-After', '60');
        $send(429, ['error' => 'too many requests']);
        return;
    }
    $path = $request->server['request_uri'];
    if ($path === '/stats') {
        $send(200, iterator_to_array($routes));
        return;
    }
    if (!preg_match('~^/notes(?:/(\d{1,18}))?$~', $path, $found)) {
        $send(404, ['error' => "there is nothing at $path"]);
        return;
    }
    // A request waits here while the others use all connections.
    $database = $pool->get();
    try {
        [$status, $body] = notes($database, $request->getMethod(), isset($found[1]) ? (int) $found[1] : null, json_decode((string) $request->rawContent(), true));
    } finally {
        $pool->put($database);
    }
    $send($status, $body);
    $route = $request->getMethod() . (isset($found[1]) ? ' /notes/ID' : ' /notes');
    $routes->incr($route, 'requests');
    $routes->incr($route, 'microseconds', (int) ((microtime(true) - $begun) * 1e6));
});

$server->start();
