<?php

namespace Outboard;

interface HttpWorker
{
    public function onStart(): void;

    public function onRequest(Request $request, Response $response): mixed;

    public function onTask(string $name, mixed $data): mixed;

    public function onFinish(string $name, mixed $result): void;

    public function onStop(): void;
}

function run(HttpWorker $worker): void
{
    $worker->onStart();
    Engine\Handlers::$other = $worker->onTask(...);
    try {
        serve(static fn (Request $request): mixed => $worker->onRequest($request, new Response()));
    } finally {
        $worker->onStop();
    }
}

namespace Outboard\Engine;

/** For a script without a call for requests: runs the configured class. */
function run_configured(): void
{
    $class = (string) getenv('OUTBOARD_WORKER_CLASS', true);
    if ($class === '') {
        return;
    }
    if (!is_subclass_of($class, \Outboard\HttpWorker::class)) {
        $problem = class_exists($class) ? 'does not implement Outboard\HttpWorker' : 'does not exist after the script has run';
        throw new \LogicException("the worker class $class $problem");
    }
    \Outboard\run(new $class());
}
