<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

class Server
{
    public $setting = null;

    public $connections = null;

    public $host = '';

    public $port = 0;

    public $type = 0;

    public $ssl = false;

    public $mode = 0;

    public $ports = null;

    public $master_pid = 0;

    public $manager_pid = 0;

    public $worker_id = -1;

    public $taskworker = false;

    public $worker_pid = 0;

    public $stats_timer = null;

    public $admin_server = null;

    /** @var array<string, callable> by event in lower case */
    private array $handlers = [];

    /** @var array<int, callable> of task(), by the task's id */
    private array $finishers = [];

    private int $tasks = 0;

    private ?Engine\Workers $workers = null;

    /** What the running task has given to finish(). */
    private ?array $finished = null;

    public function __construct(string $host = '0.0.0.0', int $port = 0, int $mode = SWOOLE_BASE, int $sock_type = SWOOLE_SOCK_TCP)
    {
        $this->host = $host;
        $this->port = $port;
        $this->mode = $mode;
        $this->type = $sock_type & ~SWOOLE_SSL;
        $this->ssl = ($sock_type & SWOOLE_SSL) !== 0;
        $this->connections = new Connection\Iterator();
        $this->ports = [new Server\Port($this, $host, $port, $sock_type)];
        $this->master_pid = getmypid();
    }

    public function set(array $settings): bool
    {
        $this->setting = $settings + ($this->setting ?? []);
        return true;
    }

    public function on(string $event_name, callable $callback): bool
    {
        $this->handlers[strtolower($event_name)] = $callback;
        return true;
    }

    public function getCallback(string $event_name): \Closure|string|array|null
    {
        return $this->handlers[strtolower($event_name)] ?? null;
    }

    public function listen(string $host, int $port, int $sock_type): Server\Port|false
    {
        return $this->ports[] = new Server\Port($this, $host, $port, $sock_type);
    }

    public function addlistener(string $host, int $port, int $sock_type): Server\Port|false
    {
        return $this->listen($host, $port, $sock_type);
    }

    /** In the process that forks the workers; in each of them this returns when it has stopped. */
    public function start(): bool
    {
        $tasks = (int) ($this->setting['task_worker_num'] ?? 0);
        if ($tasks > 0 && !isset($this->handlers['task'])) {
            trigger_error('onTask event callback must be set', E_USER_ERROR);
        }
        Engine\describe($this->description());
        $this->taskworker = \Outboard\is_task_worker();
        $this->setting = ($this->setting ?? []) + ['worker_num' => swoole_cpu_num(), 'task_worker_num' => 0];
        Engine\Settings::$values = $this->setting;
        $this->master_pid = Engine\master_pid();
        $this->manager_pid = getmypid();
        $this->workers = new Engine\Workers($this->taskworker ? $tasks : (int) $this->setting['worker_num'], $this->taskworker ? (int) $this->setting['worker_num'] : 0);
        if (!$this->taskworker) {
            $this->call('start', $this);
            $this->call('managerstart', $this);
        }
        if (!$this->taskworker) {
            foreach ($this->processes as $process) {
                $process->start();
            }
        }
        if (!Engine\fork()) {
            if (!$this->taskworker) {
                $this->call('managerstop', $this);
                $this->call('shutdown', $this);
            }
            return true;
        }
        $this->work();
        return true;
    }

    private function work(): void
    {
        $this->worker_pid = getmypid();
        $this->worker_id = $this->workers->claim($this->worker_pid);
        $this->taskworker ? $this->takeTasks() : $this->readMessages();
        Engine\begin(fn () => $this->call('workerstart', $this, $this->worker_id));
        Engine\serve($this->handler());
        $this->call('workerexit', $this, $this->worker_id);
        $this->call('workerstop', $this, $this->worker_id);
        $this->workers->leave();
        // What follows start() is the first process's.
        exit(0);
    }

    /** Requests of a port that has a handler of its own go to that. */
    private function handler(): callable
    {
        $default = $this->handlers['request'] ?? null;
        $others = [];
        foreach ($this->ports as $port) {
            $handler = $port->getCallback('request');
            if ($handler !== null) {
                $others[$port->port] = $handler;
            }
        }
        if ($others === []) {
            return $default ?? static fn () => null;
        }
        return static fn (Http\Request $request, Http\Response $response): mixed
            => ($others[$request->server['server_port']] ?? $default)($request, $response);
    }

    private function description(): string
    {
        $ports = [];
        foreach ($this->ports as $port) {
            $ports[] = ['host' => $port->host, 'port' => $port->port, 'type' => $port->type, 'ssl' => $port->ssl, 'settings' => (object) Engine\plain($port->setting ?? []), 'handlers' => $port->handled()];
        }
        return json_encode([
            'class' => $this->kind(),
            'ports' => $ports,
            'settings' => (object) Engine\plain($this->setting ?? []),
            'handlers' => array_keys($this->handlers),
            'php' => PHP_VERSION,
        ], JSON_THROW_ON_ERROR | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
    }

    protected function kind(): string
    {
        return 'server';
    }

    private function call(string $event, mixed ...$arguments): mixed
    {
        return isset($this->handlers[$event]) ? ($this->handlers[$event])(...$arguments) : null;
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

    public function sendMessage(mixed $message, int $dst_worker_id): bool
    {
        return $this->workers !== null && $dst_worker_id !== $this->worker_id && $this->workers->send($dst_worker_id, $this->worker_id, $message);
    }

    private function readMessages(): void
    {
        if (isset($this->handlers['pipemessage'])) {
            $this->workers->read($this->worker_id, fn (int $from, mixed $message): mixed => $this->call('pipemessage', $this, $from, $message));
        }
    }

    public function tick(int $ms, callable $callback, mixed ...$params): int|false
    {
        return Timer::tick($ms, $callback, ...$params);
    }

    public function after(int $ms, callable $callback, mixed ...$params): int|false
    {
        return Timer::after($ms, $callback, ...$params);
    }

    public function clearTimer(int $timer_id): bool
    {
        return Timer::clear($timer_id);
    }

    public function defer(callable $callback): void
    {
        Event::defer($callback);
    }

    public function reload(bool $only_reload_taskworker = false): bool
    {
        $this->call('beforereload', $this);
        return Engine\control('reload');
    }

    public function shutdown(): bool
    {
        $this->call('beforeshutdown', $this);
        return Engine\control('shutdown');
    }

    public function stop(int $workerId = -1, bool $waitEvent = false): bool
    {
        return Engine\control("stop $workerId");
    }

    public function stats(): array
    {
        $coroutines = Coroutine::stats();
        return [
            'version' => SWOOLE_VERSION,
            'up' => 1,
            'start_time' => $this->workers?->started ?? 0,
            'connection_num' => 0,
            'abort_count' => 0,
            'accept_count' => 0,
            'close_count' => 0,
            'worker_num' => (int) ($this->setting['worker_num'] ?? 0),
            'task_worker_num' => (int) ($this->setting['task_worker_num'] ?? 0),
            'user_worker_num' => 0,
            'idle_worker_num' => 0,
            'dispatch_count' => Engine\http_count(),
            'request_count' => Engine\http_count(),
            'response_count' => Engine\http_count(),
            'total_recv_bytes' => 0,
            'total_send_bytes' => 0,
            'worker_request_count' => Engine\http_count(),
            'worker_response_count' => Engine\http_count(),
            'worker_dispatch_count' => Engine\http_count(),
            'worker_concurrency' => $coroutines['coroutine_num'],
            'tasking_num' => 0,
            'task_idle_worker_num' => 0,
            'coroutine_num' => $coroutines['coroutine_num'],
            'coroutine_peek_num' => $coroutines['coroutine_peak_num'],
        ];
    }

    public function getWorkerId(): int|false
    {
        return $this->worker_id < 0 ? false : $this->worker_id;
    }

    public function getWorkerPid(int $worker_id = -1): int|false
    {
        return $worker_id < 0 || $worker_id === $this->worker_id ? $this->worker_pid : ($this->workers?->pid($worker_id) ?? false);
    }

    public function getWorkerStatus(int $worker_id = -1): int|false
    {
        return $this->getWorkerPid($worker_id) === false ? false : SWOOLE_WORKER_BUSY;
    }

    public function getManagerPid(): int
    {
        return $this->manager_pid;
    }

    public function getMasterPid(): int
    {
        return $this->master_pid;
    }

    public function getLastError(): int
    {
        return 0;
    }

    public function addProcess(Process $process): int
    {
        $this->processes[] = $process;
        return count($this->processes) - 1;
    }

    /** @var list<Process> */
    private array $processes = [];

    public function addCommand(string $name, int $accepted_process_types, callable $callback): bool
    {
        return false;
    }

    public function command(string $name, int $process_id, int $process_type, mixed $data, bool $json_decode = true): mixed
    {
        return false;
    }

    public function heartbeat(bool $ifCloseConnection = true): array|false
    {
        return [];
    }

    public function exist(int $fd): bool
    {
        return Engine\http_is_writable($fd);
    }

    public function exists(int $fd): bool
    {
        return Engine\http_is_writable($fd);
    }

    public function getClientInfo(int $fd, int $reactor_id = -1, bool $ignoreError = false): array|false
    {
        $server = Engine\http_server($fd);
        return $server === [] ? false : [
            'server_port' => $server['server_port'],
            'server_fd' => 0,
            'socket_fd' => $fd,
            'socket_type' => SWOOLE_SOCK_TCP,
            'remote_port' => $server['remote_port'],
            'remote_ip' => $server['remote_addr'],
            'reactor_id' => 0,
            'connect_time' => $server['request_time'],
            'last_time' => $server['request_time'],
            'last_recv_time' => $server['request_time_float'],
            'close_errno' => 0,
            'worker_id' => $this->worker_id,
        ];
    }

    public function connection_info(int $fd, int $reactor_id = -1, bool $ignoreError = false): array|false
    {
        return $this->getClientInfo($fd, $reactor_id, $ignoreError);
    }

    public function getClientList(int $start_fd = 0, int $find_count = 10): array|false
    {
        return false;
    }

    public function connection_list(int $start_fd = 0, int $find_count = 10): array|false
    {
        return false;
    }

    public function send(int|string $fd, string $send_data, int $serverSocket = -1): bool
    {
        return false;
    }

    public function sendto(string $ip, int $port, string $send_data, int $server_socket = -1): bool
    {
        return false;
    }

    public function sendwait(int $conn_fd, string $send_data): bool
    {
        return false;
    }

    public function sendfile(int $conn_fd, string $filename, int $offset = 0, int $length = 0): bool
    {
        return false;
    }

    public function close(int $fd, bool $reset = false): bool
    {
        return Engine\http_end($fd, '');
    }

    public function confirm(int $fd): bool
    {
        return true;
    }

    public function pause(int $fd): bool
    {
        return false;
    }

    public function resume(int $fd): bool
    {
        return false;
    }

    public function protect(int $fd, bool $is_protected = true): bool
    {
        return true;
    }

    public function bind(int $fd, int $uid): bool
    {
        return false;
    }

    public function getSocket(int $port = 0): mixed
    {
        return false;
    }
}

namespace Swoole\Server;

use Outboard\Engine\Swoole as Engine;

class Port
{
    public $setting = null;

    public $connections = null;

    /** @var array<string, callable> */
    private array $handlers = [];

    public readonly int $type;

    public readonly bool $ssl;

    public readonly int $sock;

    /** @internal */
    public function __construct(private readonly \Swoole\Server $server, public readonly string $host, public readonly int $port, int $sock_type)
    {
        if ($port < 0 || $port > 65535) {
            throw new \Swoole\Exception("invalid port $port: a port is 0 to 65535");
        }
        $this->type = $sock_type & ~SWOOLE_SSL;
        $this->ssl = ($sock_type & SWOOLE_SSL) !== 0;
        $this->sock = -1;
        $this->connections = new \Swoole\Connection\Iterator();
    }

    public function set(array $settings): void
    {
        $this->setting = $settings + ($this->setting ?? []);
    }

    public function on(string $event_name, callable $callback): bool
    {
        $this->handlers[strtolower($event_name)] = $callback;
        return true;
    }

    public function getCallback(string $event_name): ?callable
    {
        return $this->handlers[strtolower($event_name)] ?? null;
    }

    /** @internal */
    public function handled(): array
    {
        return array_keys($this->handlers);
    }
}

class Task
{
    public $dispatch_time;

    public int $flags = 0;

    private bool $done = false;

    /** @internal */
    public function __construct(private readonly \Swoole\Server $server, public int $id = -1, public int $worker_id = -1, public mixed $data = null)
    {
        $this->dispatch_time = microtime(true);
    }

    public function finish(mixed $data): bool
    {
        return $this->server->finish($data);
    }

    public static function pack(mixed $data): string|false
    {
        return serialize($data);
    }

    public static function unpack(string $data): mixed
    {
        return unserialize($data);
    }
}

class Event
{
    public int $reactor_id = 0;

    public int $fd = 0;

    public float $dispatch_time = 0.0;

    public mixed $data = null;
}

class Packet
{
    public int $server_socket = 0;

    public int $server_port = 0;

    public float $dispatch_time = 0.0;

    public string $address = '';

    public int $port = 0;

    public string $data = '';
}

class PipeMessage
{
    public int $source_worker_id = 0;

    public float $dispatch_time = 0.0;

    public mixed $data = null;
}

class StatusInfo
{
    public int $worker_id = 0;

    public int $worker_pid = 0;

    public int $status = 0;

    public int $exit_code = 0;

    public int $signal = 0;
}

class TaskResult
{
    public int $task_id = 0;

    public int $task_worker_id = 0;

    public float $dispatch_time = 0.0;

    public mixed $data = null;
}

namespace Swoole\Connection;

class Iterator extends \ArrayIterator
{
}

namespace Swoole\Http;

class Server extends \Swoole\Server
{
    protected function kind(): string
    {
        return 'http';
    }
}

namespace Swoole\WebSocket;

class Server extends \Swoole\Http\Server
{
    protected function kind(): string
    {
        return 'websocket';
    }
}

class Frame
{
    public $fd = 0;

    public $data = '';

    public $opcode = 1;

    public $flags = 1;

    public $finish = true;
}

class CloseFrame extends Frame
{
    public $opcode = 8;

    public $code = 1000;

    public $reason = '';
}

namespace Swoole\Redis;

class Server extends \Swoole\Server
{
    protected function kind(): string
    {
        return 'redis';
    }
}

namespace Outboard\Engine\Swoole;

/** What JSON can hold of the settings. */
function plain(array $settings): array
{
    return array_filter($settings, static fn (mixed $value): bool => is_scalar($value) || is_array($value));
}

/** @internal the workers of one pool, their numbers and how they are reached */
final class Workers
{
    public readonly int $started;

    /** @var list<\Swoole\Atomic\Long> process ids */
    private array $pids = [];

    /** @var list<array{resource, resource}> */
    private array $channels = [];

    private ?int $own = null;

    public function __construct(private readonly int $count, private readonly int $first)
    {
        $this->started = time();
        for ($number = 0; $number < $count; $number++) {
            $this->pids[] = new \Swoole\Atomic\Long(0);
            $this->channels[] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_DGRAM, 0);
        }
    }

    /** The number of this process: that of one that has gone. */
    public function claim(int $pid): int
    {
        $until = microtime(true) + 2;
        do {
            foreach ($this->pids as $number => $of) {
                $there = $of->get();
                if (($there === 0 || !file_exists("/proc/$there")) && $of->cmpset($there, $pid)) {
                    $this->own = $number;
                    return $this->first + $number;
                }
            }
            usleep(10000);
        } while (microtime(true) < $until);
        return $this->first + $this->count;
    }

    public function leave(): void
    {
        if ($this->own !== null) {
            $this->pids[$this->own]->set(0);
        }
    }

    public function pid(int $number): ?int
    {
        $pid = ($this->pids[$number - $this->first] ?? null)?->get();
        return $pid === 0 ? null : $pid;
    }

    public function send(int $number, int $from, mixed $message): bool
    {
        $channel = $this->channels[$number - $this->first] ?? null;
        return $channel !== null && @fwrite($channel[1], serialize([$from, $message])) > 0;
    }

    public function read(int $number, callable $take): void
    {
        $channel = $this->channels[$number - $this->first][0] ?? null;
        if ($channel === null) {
            return;
        }
        stream_set_blocking($channel, false);
        \Swoole\Event::add($channel, static function ($channel) use ($take): void {
            while (($text = stream_socket_recvfrom($channel, 1 << 18)) !== false && $text !== '') {
                [$from, $message] = unserialize($text);
                create($take, $from, $message);
            }
        });
    }
}

/** What the worker does before it takes requests; it is not awaited for long. */
function begin(\Closure $start): void
{
    $id = create($start);
    await($id, 3.0);
}

function master_pid(): int
{
    return (int) (getenv('OUTBOARD_SWOOLE_MASTER', true) ?: posix_getppid());
}

/** Has `outboard run` do something. */
function control(string $what): bool
{
    $path = getenv('OUTBOARD_SWOOLE_CONTROL', true);
    $pipe = $path === false ? false : @fopen($path, 'w');
    if ($pipe === false) {
        trigger_error('only a server that was started by "outboard run" can be controlled by its program', E_USER_WARNING);
        return false;
    }
    return fwrite($pipe, "$what\n") !== false;
}
