<?php

namespace product\async;

/** Several at the same time; the results have the keys of the clients. */
class Parallel extends Client
{
    private $clients;

    public function __construct(array $clients)
    {
        $this->clients = $clients;
    }

    public function fetch(callable $callback)
    {
        $results = array_fill_keys(array_keys($this->clients), null);
        $missing = count($this->clients);
        foreach ($this->clients as $key => $client) {
            $client->fetch(function ($error, $result) use ($key, $callback, &$results, &$missing) {
                $results[$key] = $error ? $error->getMessage() : $result;
                if (--$missing === 0) {
                    $callback(null, $results);
                }
            });
        }
    }
}
