<?php

/** A PSR-7 loop as RoadRunner's documentation has it; nothing in it knows of Outboard. */

declare(strict_types=1);

require_once 'Nyholm/Psr7/autoload.php';

use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\Response;
use Spiral\RoadRunner\Http\PSR7Worker;
use Spiral\RoadRunner\Worker;

$factory = new Psr17Factory();
$worker = new PSR7Worker(Worker::create(), $factory, $factory, $factory);
$served = 0;

while ($request = $worker->waitRequest()) {
    try {
        $served++;
        $path = $request->getUri()->getPath();
        if ($path === '/broken') {
            throw new DomainException('on purpose');
        }
        $facts = [
            'path' => $path,
            'query' => $request->getQueryParams(),
            'form' => $request->getParsedBody(),
            'body' => strlen((string) $request->getBody()),
            'served' => $served,
        ];
        $worker->respond(new Response(200, ['Content-Type' => 'application/json'], json_encode($facts)));
    } catch (Throwable $e) {
        $worker->respond(new Response(500, [], 'Something went wrong'));
        $worker->getWorker()->error((string) $e);
    }
}
