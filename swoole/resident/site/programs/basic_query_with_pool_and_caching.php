<?php

declare(strict_types=1);

require_once '../include/functions.php';
require_once '../include/pool.php';

final class Cache
{
    private static array $values = [];

    public static function get(string $key): ?string
    {
        return self::$values[$key] ?? null;
    }

    public static function set(string $key, string $value): void
    {
        self::$values[$key] = $value;
    }
}

$http = new Swoole\Http\Server('0.0.0.0', (int) ($argv[1] ?? 8082));
$http->set(['worker_num' => swoole_cpu_num() * 2]);
$pool = null;
$http->on('workerstart', function () use (&$pool) {
    $pool = new Pool();
});
$http->on('request', function ($request, $response) use (&$pool) {
    $page = Cache::get('page');
    if ($page === null) {
        $connection = $pool->get();
        $page = print_r($connection->query('SELECT * FROM test1'), true);
        $pool->put($connection);
        Cache::set('page', $page);
    }
    $response->end($page);
});
$http->start();
