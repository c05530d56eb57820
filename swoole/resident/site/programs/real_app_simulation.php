<?php

declare(strict_types=1);

require_once '../include/functions.php';
require_once '../include/pool.php';

use Swoole\Coroutine\System;

load_classes(100);
$cache = range(0, 9999);

$http = new Swoole\Http\Server('0.0.0.0', (int) ($argv[1] ?? 8082));
$http->set(['worker_num' => swoole_cpu_num() * 2]);
$pool = null;
$http->on('workerstart', function () use (&$pool) {
    $pool = new Pool();
});
$http->on('request', function ($request, $response) use (&$pool, $cache) {
    $sum = 0;
    for ($i = 0; $i < 10000; $i++) {
        $sum += $cache[$i];
    }
    for ($i = 0; $i < 10; $i++) {
        $file = new_file_name();
        System::writeFile($file, str_repeat("line $i\n", 100));
        $sum += strlen(System::readFile($file));
        unlink($file);
    }
    // The waits of one request at the same time, each on a connection of its own.
    $slept = 0;
    $group = new Swoole\Coroutine\WaitGroup();
    for ($i = 0; $i < 3; $i++) {
        $group->add();
        go(function () use ($pool, $group, &$slept) {
            $connection = $pool->get();
            $slept += count($connection->query('SELECT SLEEP(0.01)'));
            $pool->put($connection);
            $group->done();
        });
    }
    $group->wait();
    $response->end("$sum $slept");
});
$http->start();
