<?php

declare(strict_types=1);

require_once '../include/functions.php';
require_once '../include/pool.php';

$http = new Swoole\Http\Server('0.0.0.0', (int) ($argv[1] ?? 8082));
$http->set(['worker_num' => swoole_cpu_num() * 2]);
$pool = null;
$http->on('workerstart', function () use (&$pool) {
    $pool = new Pool();
});
$http->on('request', function ($request, $response) use (&$pool) {
    $connection = $pool->get();
    $statement = $connection->prepare('SELECT * FROM test1');
    $rows = $statement->execute();
    $pool->put($connection);
    $response->end(print_r($rows, true));
});
$http->start();
