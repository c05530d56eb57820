<?php

namespace product\async;

class Sleep extends Client
{
    private $milliseconds;

    public function __construct($milliseconds)
    {
        $this->milliseconds = $milliseconds;
    }

    public function fetch(callable $callback)
    {
        $began = microtime(true);
        swoole_timer_after($this->milliseconds, function () use ($callback, $began) {
            $callback(null, (microtime(true) - $began) * 1000);
        });
    }
}
