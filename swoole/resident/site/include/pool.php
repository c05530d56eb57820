<?php

declare(strict_types=1);

use Swoole\Coroutine\Channel;
use Swoole\Coroutine\MySQL;

function new_connection(): MySQL
{
    $settings = db_settings();
    $connection = new MySQL();
    $connected = $connection->connect([
        'host' => 'unix:' . $settings['socket'],
        'user' => $settings['user'],
        'password' => $settings['password'],
        'database' => $settings['database'],
    ]);
    if (!$connected) {
        throw new RuntimeException("no database: $connection->connect_error");
    }
    return $connection;
}

/** A few connections per worker, opened when they are needed; a coroutine that finds none waits. */
class Pool
{
    private Channel $channel;

    private int $missing;

    public function __construct()
    {
        $this->missing = db_settings()['connections'];
        $this->channel = new Channel($this->missing);
    }

    public function get(): MySQL
    {
        if ($this->channel->isEmpty() && $this->missing > 0) {
            $this->missing--;
            return new_connection();
        }
        return $this->channel->pop();
    }

    public function put(MySQL $connection): void
    {
        $this->channel->push($connection);
    }
}
