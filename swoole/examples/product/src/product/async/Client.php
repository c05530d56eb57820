<?php

namespace product\async;

/** Something to wait for: `$result = yield $client->run()` in a coroutine, fetch() elsewhere. */
abstract class Client
{
    public function run()
    {
        return $this;
    }

    /** Calls $callback($error, $result) later. */
    abstract public function fetch(callable $callback);
}
