<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

class Server
{
    use Engine\ServerConnections;
    use Engine\ServerTasks;

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

    private ?Engine\Workers $workers = null;

    /** Whether the end of a connection is announced to the worker that it belongs to. */
    private bool $announcesEnds = true;

    public function __construct(string $host = '0.0.0.0', int $port = 0, int $mode = SWOOLE_BASE, int $sock_type = SWOOLE_SOCK_TCP)
    {
        $this->host = $host;
        $this->port = $port;
        $this->mode = $mode;
        $this->type = $sock_type & ~SWOOLE_SSL;
        $this->ssl = ($sock_type & SWOOLE_SSL) !== 0;
        $this->connections = new Connection\Iterator();
        $this->ports = [new Server\Port($this, $host, $port, $sock_type, 0)];
        $this->master_pid = getmypid();
    }

    public function set(array $settings): bool
    {
        $this->setting = Engine\sizes($settings) + ($this->setting ?? []);
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
        return $this->ports[] = new Server\Port($this, $host, $port, $sock_type, count($this->ports));
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
        // Of all that a reload starts one after the other, the last.
        $newest = new Atomic\Long(0);
        if (!Engine\describe($this->description())) {
            fwrite(STDERR, "Swoole\\Server::start(): this process cannot start a server: `outboard run` starts one, once, in the program's first process and not in a child of it\n");
            return false;
        }
        $this->taskworker = \Outboard\is_task_worker();
        $this->setting = ($this->setting ?? []) + ['worker_num' => swoole_cpu_num(), 'task_worker_num' => 0];
        Engine\Settings::$values = $this->setting;
        $this->master_pid = Engine\master_pid();
        $this->manager_pid = getmypid();
        $this->workers = new Engine\Workers($this->taskworker ? $tasks : (int) $this->setting['worker_num'], $this->taskworker ? (int) $this->setting['worker_num'] : 0);
        if (!$this->taskworker) {
            $newest->set($this->manager_pid);
            $this->announce();
            foreach ($this->processes as $process) {
                // Those that follow it use the same pipe.
                $process->share();
                $process->start();
            }
        }
        while (is_int($forked = Engine\fork())) {
            $this->replace($forked);
        }
        if (!$forked) {
            $successor = $newest->get();
            $is_last = $successor === $this->manager_pid || !file_exists("/proc/$successor");
            if (!$this->taskworker && $is_last) {
                $this->call('managerstop', $this);
                $this->call('shutdown', $this);
            }
            return true;
        }
        $this->work();
        return true;
    }

    /**
     * Calls onManagerStart here, and onStart in a process of its own, as the master's is there, which stays
     * as long as a timer, a watched descriptor or a coroutine of it: this process has no event loop. Where
     * pcntl is missing or disabled, it is called here.
     */
    private function announce(): void
    {
        $start = fn (): mixed => $this->call('start', $this);
        $hasProcess = isset($this->handlers['start']) && function_exists('pcntl_fork');
        $hasProcess ? (new Process($start, false, 0, true))->start() : $start();
        $this->call('managerstart', $this);
    }

    /** Starts a process of the program again that has exited. */
    private function replace(int $pid): void
    {
        foreach ($this->processes as $process) {
            if ($process->pid === $pid) {
                fwrite(STDERR, "process $pid of the program has ended and is started again\n");
                $process->restart();
            }
        }
    }

    private function work(): void
    {
        $this->worker_pid = getmypid();
        $this->worker_id = $this->workers->claim($this->worker_pid);
        $this->taskworker ? $this->takeTasks() : $this->readMessages();
        Engine\begin(fn () => $this->call('workerstart', $this, $this->worker_id));
        if (array_filter($this->ports, fn (Server\Port $port): bool => !$port->isHttp($this->kind() === 'http')) !== []) {
            Engine\http_number_after(1 << 48);
        }
        Engine\server_join($this->worker_id, json_encode($this->streamSettings(), JSON_THROW_ON_ERROR), $this->receive(...));
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

    /** The callback of a port for an event: its own, or the server's. */
    private function portHandler(int $port, string $event): ?callable
    {
        return ($this->ports[$port] ?? null)?->getCallback($event) ?? $this->handlers[$event] ?? null;
    }

    private function description(): string
    {
        $isHttp = $this->kind() === 'http';
        $ports = array_map(static fn (Server\Port $port): array => $port->description($isHttp), $this->ports);
        foreach ($this->ports as $index => $port) {
            // Options that cannot be are reported before the server starts.
            $port->streamSettings();
            $ports[$index]['receives'] = $this->portHandler($index, in_array($port->type, [SWOOLE_SOCK_UDP, SWOOLE_SOCK_UDP6, SWOOLE_SOCK_UNIX_DGRAM], true) ? 'packet' : 'receive') !== null;
        }
        $names = array_merge(array_keys($this->setting ?? []), ...array_map(static fn (Server\Port $port): array => array_keys($port->setting ?? []), $this->ports));
        return json_encode([
            'class' => $this->kind(),
            'mode' => $this->mode,
            'ports' => $ports,
            'settings' => (object) Engine\plain($this->setting ?? []),
            'unknown' => array_values(array_map('strval', array_diff($names, (new \ReflectionClass(Constant::class))->getConstants()))),
            'handlers' => array_keys($this->handlers),
            'handles_requests' => array_filter($this->ports, static fn (Server\Port $port): bool => $port->getCallback('request') !== null) !== [],
            'php' => PHP_VERSION,
        ], JSON_THROW_ON_ERROR | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
    }

    /** For the gateway: swoole/stream-server/src/settings.rs. */
    private function streamSettings(): array
    {
        $mode = (int) ($this->setting['dispatch_mode'] ?? 2);
        $this->announcesEnds = !in_array($mode, [1, 3, 9], true) || !empty($this->setting['enable_unsafe_event']);
        // As `outboard run` has it for requests.
        $concurrency = array_filter(array_map(fn (string $name): int => (int) ($this->setting[$name] ?? 0), ['worker_max_concurrency', 'max_coroutine', 'max_coro_num']));
        $ofAll = (int) ($this->setting['max_concurrency'] ?? 0);
        $concurrency = min([1000, ...$concurrency, ...($ofAll > 0 ? [max(1, intdiv($ofAll, max(1, (int) $this->setting['worker_num'])))] : [])]);
        return [
            'is_task_worker' => $this->taskworker,
            'dispatch_mode' => $mode,
            'unsafe_events' => !empty($this->setting['enable_unsafe_event']),
            'max_connections' => (int) ($this->setting['max_connection'] ?? $this->setting['max_conn'] ?? 0),
            'concurrency' => ($this->setting['enable_coroutine'] ?? true) ? $concurrency : 1,
            'ports' => array_map(static fn (Server\Port $port): array => $port->streamSettings(), $this->ports),
        ];
    }

    protected function kind(): string
    {
        return 'server';
    }

    private function call(string $event, mixed ...$arguments): mixed
    {
        return isset($this->handlers[$event]) ? ($this->handlers[$event])(...$arguments) : null;
    }

    /** To another worker or a task worker; a process that the program has forked reaches only workers. */
    public function sendMessage(mixed $message, int $dst_worker_id): bool
    {
        $workers = (int) ($this->setting['worker_num'] ?? 0) + (int) ($this->setting['task_worker_num'] ?? 0);
        if ($this->workers === null || $dst_worker_id === $this->worker_id || $dst_worker_id < 0 || $dst_worker_id >= $workers) {
            return false;
        }
        return Engine\server_call(Engine\MESSAGE, 0, max($this->worker_id, 0), $dst_worker_id, serialize($message))
            || $this->workers->send($dst_worker_id, $this->worker_id, $message);
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
        $streams = Engine\server_query(Engine\STATS, 0, 0, 0);
        $streams = $streams === false ? [] : json_decode($streams, true);
        $handled = Engine\http_count() + ($streams['items'] ?? 0);
        return [
            'version' => SWOOLE_VERSION,
            'up' => 1,
            'start_time' => $this->workers?->started ?? 0,
            'connection_num' => $streams['connection_num'] ?? 0,
            'abort_count' => 0,
            'accept_count' => $streams['accept_count'] ?? 0,
            'close_count' => $streams['close_count'] ?? 0,
            'worker_num' => (int) ($this->setting['worker_num'] ?? 0),
            'task_worker_num' => (int) ($this->setting['task_worker_num'] ?? 0),
            'user_worker_num' => 0,
            'idle_worker_num' => 0,
            'dispatch_count' => $handled,
            'request_count' => $handled,
            'response_count' => $handled,
            'total_recv_bytes' => $streams['total_recv_bytes'] ?? 0,
            'total_send_bytes' => $streams['total_send_bytes'] ?? 0,
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

    public function getSocket(int $port = 0): mixed
    {
        return false;
    }
}
