<?php

namespace Outboard;

function on_task(string $name, callable $handler): void
{
    Engine\Handlers::$byName[$name] = $handler;
}

function is_task_worker(): bool
{
    return getenv('OUTBOARD_TASK_WORKER', true) === '1';
}

final class Task
{
    /** @internal */
    public function __construct(
        public readonly string $name,
        public readonly string $id,
        public readonly int $attempt,
    ) {
    }
}

class TaskException extends \RuntimeException
{
    /** @internal */
    public function __construct(string $message, public readonly string $reason, public readonly string $task)
    {
        parent::__construct($message);
    }
}

namespace Outboard\Engine;

/** @internal */
final class Handlers
{
    /** @var array<string, callable> */
    public static array $byName = [];
    /** @var callable|null for all other names */
    public static $other = null;
}

/** By the numbers of ring's Failure. */
const FAILURES = [
    1 => 'bad_call', 'resolve', 'connect', 'tls', 'timeout', 'protocol', 'redirects', 'too_large', 'busy', 'task',
];

/** Outboard\dispatch() */
function dispatch(string $name, mixed $data, float $delay, ?int $retries): string
{
    return queue($name, $data, $delay, $retries, false);
}

/** Outboard\task() */
function await_task(string $name, mixed $data, ?int $retries): mixed
{
    return unserialize(queue($name, $data, 0, $retries, true));
}

/** Sends a task to the gateway; returns its id or, if awaited, its result. */
function queue(string $name, mixed $data, float $delay, ?int $retries, bool $awaited): string
{
    if ($name === '' || strlen($name) > 255) {
        throw new \ValueError('Argument #1 ($name) of a task must have 1 to 255 bytes');
    }
    if ($delay < 0 || $delay > 1e9 || $retries < 0 || $retries > 254) {
        throw new \ValueError("the task $name: a delay is 0 to 1,000,000,000 seconds, retries are 0 to 254");
    }
    $result = task($name, serialize($data), (int) ($delay * 1000), $retries ?? -1, $awaited);
    if (count($result) === 2) {
        throw new \Outboard\TaskException("the task $name: $result[1]", FAILURES[$result[0]] ?? 'protocol', $name);
    }
    return $result[4];
}

/**
 * Runs the task of the current request. The status is 500 until the task has returned, so that an
 * exit() is a failure.
 */
function perform(): void
{
    http_response_code(500);
    $server = server(request_number());
    $task = new \Outboard\Task($server['OUTBOARD_TASK'], $server['OUTBOARD_TASK_ID'], (int) $server['OUTBOARD_TASK_ATTEMPT']);
    try {
        $data = unserialize((string) file_get_contents('php://input'));
        $handler = Handlers::$byName[$task->name] ?? null;
        $result = match (true) {
            $handler !== null => $handler($data, $task),
            Handlers::$other !== null => (Handlers::$other)($task->name, $data),
            default => throw new \LogicException("no handler is registered for the task $task->name"),
        };
        $result = serialize($result);
        while (ob_get_level() > 0 && @ob_end_clean()) {
            continue;
        }
        http_response_code(200);
        echo $result;
    } catch (\Throwable $thrown) {
        \Outboard\log("the task $task->name ($task->id) failed at attempt $task->attempt: $thrown", LOG_WARNING);
        echo $thrown::class, ': ', $thrown->getMessage();
    }
}
