<?php

/** An HTTP server as Swoole's documentation has them; nothing in it knows of Outboard. */

declare(strict_types=1);

use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Swoole\Timer;

$http = new Server('0.0.0.0', 9501, SWOOLE_BASE);
$http->set(['worker_num' => 2, 'task_worker_num' => 1, 'max_request' => 10000]);
$ticks = 0;
$finished = [];

$http->on('workerStart', static function (Server $server, int $id) use (&$ticks): void {
    Timer::tick(10, static function () use (&$ticks): void {
        $ticks++;
    });
});

$http->on('request', static function (Request $request, Response $response) use ($http, &$ticks, &$finished): void {
    $path = $request->server['request_uri'];
    $response->header('Content-Type', 'application/json');
    if ($path === '/pieces') {
        foreach (['one ', 'two ', 'three'] as $piece) {
            $response->write($piece);
        }
        $response->end();
        return;
    }
    if ($path === '/task') {
        $http->task((int) ($request->get['number'] ?? 0));
    }
    $response->status($path === '/missing' ? 404 : 200);
    $response->cookie('seen', 'yes');
    $response->end(json_encode([
        'method' => $request->server['request_method'],
        'get' => $request->get,
        'agent' => $request->header['user-agent'] ?? '',
        'body' => $request->rawContent(),
        'ticks' => $ticks,
        'finished' => $finished,
        'waited' => $path === '/wait' ? $http->taskwait(21, 5.0) : null,
    ]));
});

$http->on('task', static fn (Server $server, int $id, int $from, mixed $data): int => $data * 2);

$http->on('finish', static function (Server $server, int $id, mixed $result) use (&$finished): void {
    $finished[] = $result;
});

$http->start();
