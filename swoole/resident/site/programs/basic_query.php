<?php

declare(strict_types=1);

require_once '../include/functions.php';
require_once '../include/pool.php';

Swoole\Runtime::enableCoroutine();

$http = new Swoole\Http\Server('0.0.0.0', (int) ($argv[1] ?? 8082));
$http->set(['worker_num' => swoole_cpu_num() * 2]);
$http->on('request', function ($request, $response) {
    $connection = new_connection();
    $statement = $connection->prepare('SELECT * FROM test1');
    $rows = $statement->execute();
    $response->end(print_r($rows, true));
});
$http->start();
