<?php

declare(strict_types=1);

namespace Outboard;

/**
 * A worker with services: those that stay in it, and those that each request has of its own.
 *
 *     Outboard\run(new Shop());    // or class = "Shop" in [app.NAME.worker]
 */
abstract class Worker implements HttpWorker
{
    private ?Container $services = null;

    public function onStart(): void
    {
    }

    final public function onRequest(Request $request, Response $response): mixed
    {
        $this->services ??= $this->register(new Container());
        return $this->answer($request, $response, $this->services->scope($request));
    }

    public function onTask(string $name, mixed $data): mixed
    {
        throw new \LogicException("no task is named $name");
    }

    public function onFinish(string $name, mixed $result): void
    {
    }

    public function onStop(): void
    {
    }

    /** Says how services are made. */
    protected function register(Container $services): Container
    {
        return $services;
    }

    /**
     * Answers a request with what Outboard\serve() takes; the services are this request's.
     */
    abstract protected function answer(Request $request, Response $response, Container $services): mixed;

    /** Queues a task; onFinish() hears of its result in this worker, if that still lives then. */
    final protected function dispatch(string $name, mixed $data = null): void
    {
        after(0.0, function () use ($name, $data): void {
            $this->onFinish($name, task($name, $data));
        });
    }
}
