<?php

namespace Outboard\Engine\Swoole;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;
use Swoole\Server;

/** @internal tasks of a server: those that a worker queues, and how a task worker performs them */
trait ServerTasks
{
    private int $tasks = 0;

    /** The argument of finish() in the running task. */
    private ?array $finished = null;

    /** Queues a task; "finish" is called here with its result, if it has one. */
    public function task(mixed $data, int $task_worker_id = -1, ?callable $finish_callback = null): int|false
    {
        if ((int) ($this->setting['task_worker_num'] ?? 0) === 0) {
            trigger_error('task method can not be used: task_worker_num is not set', E_USER_WARNING);
            return false;
        }
        $id = $this->tasks++;
        Engine\create(function () use ($id, $data, $finish_callback): void {
            $result = $this->perform($id, $data);
            if ($result !== null && $result !== []) {
                $finish_callback === null ? $this->call('finish', $this, $id, $result[0]) : $finish_callback($this, $id, $result[0]);
            }
        });
        return $id;
    }

    public function taskwait(mixed $data, float $timeout = 0.5, int $task_worker_id = -1): mixed
    {
        return $this->taskWaitMulti([$data], $timeout)[0] ?? false;
    }

    public function taskWaitMulti(array $tasks, float $timeout = 0.5): array|false
    {
        $results = $this->taskCo($tasks, $timeout);
        return $results === false ? false : array_filter($results, static fn (mixed $result): bool => $result !== false);
    }

    public function taskCo(array $tasks, float $timeout = 0.5): array|false
    {
        $group = new Coroutine\WaitGroup(count($tasks));
        $results = array_fill_keys(array_keys($tasks), false);
        foreach ($tasks as $key => $data) {
            $id = $this->tasks++;
            Engine\create(function () use ($group, $key, $id, $data, &$results): void {
                try {
                    $result = $this->perform($id, $data);
                    $results[$key] = $result === null || $result === [] ? false : $result[0];
                } finally {
                    $group->done();
                }
            });
        }
        $group->wait($timeout);
        // A result that comes later is nobody's.
        $taken = [];
        foreach ($results as $key => $result) {
            $taken[$key] = $result;
        }
        return $taken;
    }

    private function perform(int $id, mixed $data): ?array
    {
        try {
            return \Outboard\task('swoole', [$id, $this->worker_id, $data], 0);
        } catch (\Outboard\TaskException $failed) {
            trigger_error('task ' . $id . ' failed: ' . $failed->getMessage(), E_USER_WARNING);
            return null;
        }
    }

    public function finish(mixed $data): bool
    {
        if (!$this->taskworker) {
            return false;
        }
        $this->finished = [$data];
        return true;
    }

    private function takeTasks(): void
    {
        \Outboard\on_task('swoole', function (array $sent): mixed {
            [$id, $from, $data] = $sent;
            $this->finished = null;
            ob_start(static function (string $text): string {
                fwrite(STDOUT, $text);
                return '';
            });
            try {
                if (!empty($this->setting['task_enable_coroutine']) || !empty($this->setting['task_use_object'])) {
                    $task = new Server\Task($this, $id, $from, $data);
                    $result = ($this->handlers['task'])($this, $task);
                } else {
                    $result = ($this->handlers['task'])($this, $id, $from, $data);
                }
            } finally {
                ob_end_clean();
            }
            return $this->finished ?? ($result === null ? [] : [$result]);
        });
    }
}
