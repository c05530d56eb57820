<?php

namespace product\async;

/** The result of a task, or an error after some seconds. */
class Task extends Client
{
    private $server;

    private $data;

    private $seconds;

    public function __construct($server, $data, $seconds = 5)
    {
        $this->server = $server;
        $this->data = $data;
        $this->seconds = $seconds;
    }

    public function fetch(callable $callback)
    {
        $timer = swoole_timer_after((int) ($this->seconds * 1000), function () use (&$callback) {
            $late = $callback;
            $callback = null;
            $late(new \RuntimeException('the task takes too long', 504), null);
        });
        $this->server->task($this->data, -1, function ($server, $id, $result) use (&$callback, $timer) {
            if ($callback) {
                swoole_timer_clear($timer);
                $callback(null, $result);
            }
        });
    }
}
