<?php

namespace Swoole\Server;

class Task
{
    public $dispatch_time;

    public int $flags = 0;

    private bool $done = false;

    /** @internal */
    public function __construct(private readonly \Swoole\Server $server, public int $id = -1, public int $worker_id = -1, public mixed $data = null)
    {
        $this->dispatch_time = microtime(true);
    }

    public function finish(mixed $data): bool
    {
        return $this->server->finish($data);
    }

    public static function pack(mixed $data): string|false
    {
        return serialize($data);
    }

    public static function unpack(string $data): mixed
    {
        return unserialize($data);
    }
}

class Event
{
    public int $reactor_id = 0;

    public int $fd = 0;

    public float $dispatch_time = 0.0;

    public mixed $data = null;
}

class Packet
{
    public int $server_socket = 0;

    public int $server_port = 0;

    public float $dispatch_time = 0.0;

    public string $address = '';

    public int $port = 0;

    public string $data = '';
}

class PipeMessage
{
    public int $source_worker_id = 0;

    public float $dispatch_time = 0.0;

    public mixed $data = null;
}

class StatusInfo
{
    public int $worker_id = 0;

    public int $worker_pid = 0;

    public int $status = 0;

    public int $exit_code = 0;

    public int $signal = 0;
}

class TaskResult
{
    public int $task_id = 0;

    public int $task_worker_id = 0;

    public float $dispatch_time = 0.0;

    public mixed $data = null;
}
