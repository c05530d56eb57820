<?php

namespace Outboard;

final class Coroutine
{
    private bool $done = false;
    private mixed $result = null;
    private ?\Throwable $thrown = null;
    /** @var list<int> */
    private array $waiters = [];
    private int $task;

    /** @internal */
    public function __construct(callable $task, array $arguments)
    {
        $this->thrown = new Cancelled('the task ended without a result');
        $this->task = Engine\spawn(
            function () use ($task, $arguments): void {
                try {
                    $this->result = $task(...$arguments);
                    $this->thrown = null;
                } catch (\Throwable $thrown) {
                    $this->thrown = $thrown;
                }
            },
            // Called in any case, even after exit().
            function (): void {
                $this->done = true;
                array_map(Engine\wake(...), $this->waiters);
            },
        );
    }

    public function await(): mixed
    {
        while (!$this->done) {
            $this->waiters[] = Engine\current();
            Engine\suspend();
        }
        return $this->thrown === null ? $this->result : throw $this->thrown;
    }

    public function isDone(): bool
    {
        return $this->done;
    }

    public function cancel(): void
    {
        if (!$this->done) {
            Engine\cancel($this->task);
        }
    }
}

final class Cancelled extends \Error
{
}

namespace Outboard\Engine;

/** Waits for all, then throws the first exception or returns all results. */
function await_all(array $coroutines): array
{
    $first = null;
    $results = [];
    foreach ($coroutines as $key => $coroutine) {
        try {
            $results[$key] = $coroutine->await();
        } catch (\Throwable $thrown) {
            $first ??= $thrown;
        }
    }
    return $first === null ? $results : throw $first;
}
