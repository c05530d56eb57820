<?php

declare(strict_types=1);

namespace Outboard\Shim\Swoole;

/**
 * Swoole\Http\Server, as far as request and task handlers go. Host, port, processes and limits
 * are the configuration's: what the script says of them is kept in $setting and has no effect.
 */
final class Server
{
    /** @var array<string, mixed> */
    public array $setting = [];

    public int $worker_id = 0;

    public bool $taskworker = false;

    /** @var array<string, callable> by event in lower case */
    private array $handlers = [];

    public function __construct(
        public readonly string $host = '127.0.0.1',
        public readonly int $port = 0,
        int $mode = 0,
        int $socket = 0,
    ) {
    }

    /** @param array<string, mixed> $settings */
    public function set(array $settings): bool
    {
        $this->setting = $settings + $this->setting;
        return true;
    }

    public function on(string $event, callable $handler): bool
    {
        $this->handlers[strtolower($event)] = $handler;
        return true;
    }

    /** Answers requests, or does tasks, until the worker is to leave. */
    public function start(): bool
    {
        $this->worker_id = (int) getmypid();
        $this->taskworker = \Outboard\is_task_worker();
        if (isset($this->handlers['task'])) {
            \Outboard\on_task('swoole', fn (mixed $data, \Outboard\Task $task): mixed
                => ($this->handlers['task'])($this, $task->attempt, $this->worker_id, $data));
        }
        $this->call('start', $this);
        $this->call('workerstart', $this, $this->worker_id);
        \Outboard\serve(function (\Outboard\Request $request): void {
            $response = new Response();
            $this->call('request', Request::of($request), $response);
            $response->finish();
        });
        $this->call('workerstop', $this, $this->worker_id);
        return true;
    }

    /** Queues a task, for the "task" handler of a task worker; "finish" hears of its result here. */
    public function task(mixed $data, int $worker = -1, ?callable $finish = null): int
    {
        static $number = 0;
        $id = ++$number;
        \Outboard\after(0.0, function () use ($data, $finish, $id): void {
            $result = \Outboard\task('swoole', $data);
            $finish === null ? $this->call('finish', $this, $id, $result) : $finish($this, $id, $result);
        });
        return $id;
    }

    /** Waits for the result of a task; false when it takes longer, or fails. */
    public function taskwait(mixed $data, float $timeout = 0.5): mixed
    {
        $task = \Outboard\spawn(\Outboard\task(...), 'swoole', $data);
        $timer = \Outboard\after($timeout, $task->cancel(...));
        try {
            return $task->await();
            // @mago-expect analysis:avoid-catching-error - how a cancelled task ends; no mistake of the code
        } catch (\Outboard\Cancelled | \Outboard\TaskException) {
            return false;
        } finally {
            $timer->cancel();
        }
    }

    private function call(string $event, mixed ...$arguments): void
    {
        if (isset($this->handlers[$event])) {
            ($this->handlers[$event])(...$arguments);
        }
    }
}
