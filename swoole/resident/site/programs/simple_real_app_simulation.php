<?php

declare(strict_types=1);

require_once '../include/functions.php';
require_once '../include/pool.php';

load_classes(100);
$cache = array_combine(array_map(fn ($n) => "key$n", range(0, 999)), range(0, 999));

$http = new Swoole\Http\Server('0.0.0.0', (int) ($argv[1] ?? 8082));
$http->set(['worker_num' => swoole_cpu_num() * 2]);
$pool = null;
$http->on('workerstart', function () use (&$pool) {
    $pool = new Pool();
});
$http->on('request', function ($request, $response) use (&$pool, $cache) {
    $sum = 0;
    foreach ($cache as $key => $unused) {
        $sum += $cache[$key];
    }
    $connection = $pool->get();
    $first = $connection->query('SELECT test1_id, test1_data FROM test1 WHERE test1_id = 1');
    $second = $connection->query('SELECT test1_id, test1_data FROM test1 WHERE test1_id = 2');
    $pool->put($connection);
    $response->end($sum . print_r($first, true) . print_r($second, true));
});
$http->start();
