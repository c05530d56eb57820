<?php

namespace product;

/** What worker_class implements. */
interface Worker
{
    public function onStart($server, $workerId);

    public function onShutdown($server, $workerId);

    public function onRequest($request, $response);
}
