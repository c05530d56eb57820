<?php

declare(strict_types=1);

require_once '../include/functions.php';

$http = new swoole_http_server('0.0.0.0', (int) ($argv[1] ?? 8082));
$http->set([
    'worker_num' => swoole_cpu_num() * 2,
]);
$http->on('request', function ($request, $response) {
    $response->end('ok');
});
$http->start();
