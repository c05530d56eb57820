<?php

declare(strict_types=1);

namespace Outboard;

/**
 * A worker with services, per worker and per request.
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
        return $this->handle($request, $response, $this->services->scope($request));
    }

    public function onTask(string $name, mixed $data): mixed
    {
        throw new \LogicException("there is no task $name");
    }

    public function onFinish(string $name, mixed $result): void
    {
    }

    public function onStop(): void
    {
    }

    /** Registers the services. */
    protected function register(Container $services): Container
    {
        return $services;
    }

    /**
     * Returns a result for Outboard\serve(); the services are those of the request.
     */
    abstract protected function handle(Request $request, Response $response, Container $services): mixed;

    /** Queues a task; onFinish() receives its result in this worker, if it still runs. */
    final protected function dispatch(string $name, mixed $data = null): void
    {
        after(0.0, function () use ($name, $data): void {
            $this->onFinish($name, task($name, $data));
        });
    }
}
