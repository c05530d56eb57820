<?php

namespace demo;

/** 23 bytes with validators. */
class Worker implements \product\Worker
{
    const PAGE = "<h1>Hello, product</h1>";

    public function __construct($config, $server)
    {
    }

    public function onStart($server, $workerId)
    {
    }

    public function onShutdown($server, $workerId)
    {
    }

    public function onRequest($request, $response)
    {
        $response->header('Last-Modified', 'Thu, 01 Sep 2016 08:00:00 GMT');
        $response->header('ETag', '"57c7e380-17"');
        $response->header('Accept-Ranges', 'bytes');
        $response->header('Content-Type', 'text/html');
        $response->end(self::PAGE);
    }
}
