<?php

namespace Swoole\Process;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;
use Swoole\Process;

/**
 * Processes that are started again when they end, and the messages that they get. This process forks
 * them, waits for them, and ends with SIGTERM; SIGUSR1 replaces them.
 */
class Pool
{
    public int $master_pid = -1;

    public int $workerPid = -1;

    public int $workerId = -1;

    public ?array $workers = null;

    public bool $workerRunning = true;

    public bool $running = true;

    /** @var array<string, callable> by event in lower case */
    private array $handlers = [];

    /** @var array<int, int> numbers by process id */
    private array $pids = [];

    /** @var array<int, Process> by number */
    private array $processes = [];

    /** @var array<int, \Swoole\Atomic\Long> process ids by number */
    private array $started = [];

    /** @var array<int, array{resource, resource}> where a worker reads, and where others write to it */
    private array $channels = [];

    /** @var resource|null of listen() */
    private mixed $listener = null;

    /** What the client of the handled message gets. */
    private ?string $answer = null;

    private mixed $queue = null;

    private float $maxWait = 3;

    private bool $hasMessages;

    public function __construct(private readonly int $worker_num, private readonly int $ipc_type = SWOOLE_IPC_NONE, int $msgqueue_key = 0, private bool $enable_coroutine = false)
    {
        if ($worker_num < 1) {
            throw new \Swoole\Exception('the parameter $worker_num must be greater than 0', SWOOLE_ERROR_INVALID_PARAMS);
        }
        if ($enable_coroutine && $ipc_type > SWOOLE_IPC_UNIXSOCK) {
            throw new \Swoole\Exception('with coroutines the messages come by SWOOLE_IPC_UNIXSOCK or not at all', SWOOLE_ERROR_INVALID_PARAMS);
        }
        if ($ipc_type === SWOOLE_IPC_MSGQUEUE) {
            $this->queue = msg_get_queue($msgqueue_key ?: random_int(1, PHP_INT_MAX >> 33));
        }
        $this->master_pid = getmypid();
    }

    public function __destruct()
    {
    }

    public function set(array $settings): void
    {
        $this->enable_coroutine = (bool) ($settings['enable_coroutine'] ?? $this->enable_coroutine);
        $this->maxWait = (float) ($settings['max_wait_time'] ?? $this->maxWait);
    }

    public function on(string $name, callable $callback): bool
    {
        if ($this->workerId >= 0) {
            return Engine\warn('Swoole\Process\Pool::on(): process pool is started, unable to register event callback function');
        }
        $name = strtolower($name);
        if ($name === 'message' && $this->ipc_type === SWOOLE_IPC_NONE) {
            return Engine\warn('Swoole\Process\Pool::on(): cannot set onMessage event with ipc_type=0');
        }
        $known = ['workerstart', 'workerstop', 'workerexit', 'workererror', 'message', 'start', 'shutdown'];
        if (!in_array($name, $known, true)) {
            return Engine\warn("Swoole\\Process\\Pool::on(): unknown event type [$name]");
        }
        $this->handlers[$name] = $callback;
        return true;
    }

    public function getProcess(int $work_id = -1): Process|false
    {
        $number = $work_id < 0 ? $this->workerId : $work_id;
        if (!isset($this->processes[$number])) {
            return false;
        }
        // One that has been forked later is known by its memory.
        $this->processes[$number]->pid = $this->started[$number]->get() ?: null;
        return $this->processes[$number];
    }

    public function listen(string $host, int $port = 0, int $backlog = 2048): bool
    {
        if ($this->ipc_type !== SWOOLE_IPC_SOCKET) {
            return Engine\warn('Swoole\Process\Pool::listen(): unsupported ipc type[' . $this->ipc_type . ']');
        }
        $address = str_starts_with($host, 'unix:') ? 'unix:///' . ltrim(substr($host, 5), '/') : (str_contains($host, ':') ? "tcp://[$host]:$port" : "tcp://$host:$port");
        $context = stream_context_create(['socket' => ['backlog' => $backlog]]);
        $this->listener = @stream_socket_server($address, $code, $message, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, $context) ?: null;
        return $this->listener !== null || Engine\warn("Swoole\\Process\\Pool::listen(): $address: $message");
    }

    /** To the client whose message is handled, which gets it after that. */
    public function write(string $data): bool
    {
        if ($this->answer === null || $data === '') {
            return false;
        }
        $this->answer .= $data;
        return true;
    }

    public function sendMessage(string $data, int $dst_worker_id): bool
    {
        if ($this->ipc_type !== SWOOLE_IPC_UNIXSOCK) {
            return Engine\warn('Swoole\Process\Pool::sendMessage(): unsupported ipc type[' . $this->ipc_type . ']');
        }
        $channel = $this->channels[$dst_worker_id] ?? null;
        return $channel !== null && @stream_socket_sendto($channel[1], $data) === strlen($data);
    }

    public function start(): ?bool
    {
        if ($this->workerId >= 0 || $this->pids !== []) {
            return Engine\warn('Swoole\Process\Pool::start(): the pool is started');
        }
        $this->hasMessages = $this->ipc_type !== SWOOLE_IPC_NONE && isset($this->handlers['message']);
        if (!isset($this->handlers['workerstart']) && !$this->hasMessages) {
            $event = $this->ipc_type === SWOOLE_IPC_NONE ? 'onWorkerStart' : 'onMessage';
            throw new \Swoole\Exception("the callback $event must be set");
        }
        $this->master_pid = getmypid();
        $this->running = true;
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, function (): void {
            $this->running = false;
        });
        pcntl_signal(SIGUSR1, $this->reload(...));
        for ($number = 0; $number < $this->worker_num; $number++) {
            $this->started[$number] = new \Swoole\Atomic\Long();
            // Before any of them is forked, so that each can write to each.
            $process = new Process(fn (Process $process) => $this->work($process, $number), false, SOCK_DGRAM);
            $process->id = $number;
            $this->processes[$number] = $process;
            $this->channels[$number] = array_reverse($process->share());
        }
        $this->call('start', $this);
        for ($number = 0; $number < $this->worker_num && $this->running; $number++) {
            $this->begin($number);
        }
        while ($this->running) {
            if (!$this->reap(true)) {
                usleep(10000);
            }
        }
        $this->end();
        $this->call('shutdown', $this);
        pcntl_signal(SIGTERM, SIG_DFL);
        pcntl_signal(SIGUSR1, SIG_DFL);
        return null;
    }

    /** Whether a worker has ended; another one begins in its place. */
    private function reap(bool $replaces): bool
    {
        $pid = pcntl_waitpid(-1, $status, WNOHANG);
        if ($pid <= 0) {
            return false;
        }
        $number = $this->pids[$pid] ?? null;
        unset($this->pids[$pid]);
        if ($number === null) {
            return true;
        }
        if (pcntl_wifsignaled($status) || pcntl_wexitstatus($status) !== 0) {
            $this->call('workererror', $this, $number, $pid, pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 0, pcntl_wifsignaled($status) ? pcntl_wtermsig($status) : 0);
        }
        if ($replaces && $this->running) {
            $this->begin($number);
        }
        return true;
    }

    private function reload(): void
    {
        foreach (array_keys($this->pids) as $pid) {
            posix_kill($pid, SIGTERM);
        }
    }

    /** SIGTERM for all; SIGKILL for those that have not ended in time. */
    private function end(): void
    {
        $this->reload();
        $until = microtime(true) + $this->maxWait;
        while ($this->pids !== [] && microtime(true) < $until) {
            $this->reap(false) || usleep(2000);
        }
        foreach (array_keys($this->pids) as $pid) {
            posix_kill($pid, SIGKILL);
            pcntl_waitpid($pid, $status);
        }
        $this->pids = [];
    }

    public function stop(): void
    {
        $this->workerRunning = false;
    }

    public function shutdown(): bool
    {
        return $this->master_pid > 0 && posix_kill($this->master_pid, SIGTERM);
    }

    /** Another process takes the place of this one, which goes on by itself. */
    public function detach(): bool
    {
        if ($this->workerId < 0) {
            return false;
        }
        // The pool sees that this process has ended: its child goes on.
        $pid = Engine\fork_on();
        $this->workerPid = getmypid();
        return $pid === 0 && posix_setsid() > 0;
    }

    private function call(string $event, mixed ...$arguments): void
    {
        if (isset($this->handlers[$event])) {
            ($this->handlers[$event])(...$arguments);
        }
    }

    private function begin(int $number): void
    {
        $pid = $this->processes[$number]->start();
        if ($pid !== false) {
            $this->pids[$pid] = $number;
            $this->started[$number]->set($pid);
        }
    }

    private function work(Process $process, int $number): void
    {
        pcntl_signal(SIGUSR1, SIG_DFL);
        pcntl_signal(SIGTERM, function (): void {
            $this->workerRunning = false;
            $this->call('workerexit', $this, $this->workerId);
        });
        $this->workerId = $number;
        $this->workerPid = getmypid();
        $this->workerRunning = true;
        $this->started[$number]->set(getmypid());
        $this->pids = [];
        $this->enable_coroutine ? Coroutine\run($this->live(...), $number) : $this->live($number);
    }

    private function live(int $number): void
    {
        $this->call('workerstart', $this, $number);
        if ($this->hasMessages) {
            match ($this->ipc_type) {
                SWOOLE_IPC_UNIXSOCK => $this->readChannel($number),
                SWOOLE_IPC_MSGQUEUE => $this->readQueue(),
                default => $this->readConnections(),
            };
        }
        $this->call('workerstop', $this, $number);
    }

    private function readChannel(int $number): void
    {
        $channel = $this->channels[$number][0];
        while ($this->workerRunning) {
            if (Engine\wait_descriptor($channel, SWOOLE_EVENT_READ, 0.05) === 0) {
                continue;
            }
            $data = stream_socket_recvfrom($channel, 1 << 20);
            if (is_string($data) && $data !== '') {
                $this->enable_coroutine ? Coroutine::create(fn () => $this->call('message', $this, $data)) : $this->call('message', $this, $data);
            }
        }
    }

    private function readQueue(): void
    {
        while ($this->workerRunning) {
            if (@msg_receive($this->queue, 0, $type, 65536, $data, false, MSG_IPC_NOWAIT)) {
                $this->call('message', $this, $data);
            } else {
                usleep(2000);
            }
        }
    }

    private function readConnections(): void
    {
        while ($this->workerRunning) {
            // Another worker may be first.
            if (Engine\wait_descriptor($this->listener, SWOOLE_EVENT_READ, 0.05) === 0 || !($connection = @stream_socket_accept($this->listener, 0))) {
                continue;
            }
            stream_set_timeout($connection, 10);
            $head = (string) stream_get_contents($connection, 4);
            $length = strlen($head) === 4 ? unpack('N', $head)[1] : 0;
            $data = $length > 0 && $length <= 1 << 23 ? (string) stream_get_contents($connection, $length) : '';
            if (strlen($data) === $length && $length > 0) {
                $this->answer = '';
                $this->call('message', $this, $data);
                $this->answer === '' || @fwrite($connection, pack('N', strlen($this->answer)) . $this->answer);
                $this->answer = null;
            }
            fclose($connection);
        }
    }
}

/** Functions as the workers of one pool. */
class Manager
{
    protected Pool $pool;

    protected int $ipcType = SWOOLE_IPC_NONE;

    protected int $msgQueueKey = 0;

    /** @var list<array{callable, bool}> */
    protected array $startFuncMap = [];

    public function __construct(int $ipcType = SWOOLE_IPC_NONE, int $msgQueueKey = 0)
    {
        $this->setIPCType($ipcType)->setMsgQueueKey($msgQueueKey);
    }

    public function add(callable $func, bool $enableCoroutine = false): self
    {
        return $this->addBatch(1, $func, $enableCoroutine);
    }

    public function addBatch(int $workerNum, callable $func, bool $enableCoroutine = false): self
    {
        for ($i = 0; $i < $workerNum; $i++) {
            $this->startFuncMap[] = [$func, $enableCoroutine];
        }
        return $this;
    }

    public function start(): void
    {
        $this->pool = new Pool(count($this->startFuncMap), $this->ipcType, $this->msgQueueKey, false);
        $this->pool->on('workerStart', function (Pool $pool, int $number): void {
            [$func, $isConcurrent] = $this->startFuncMap[$number];
            $isConcurrent ? Coroutine\run($func, $pool, $number) : $func($pool, $number);
        });
        $this->pool->start();
    }

    public function setIPCType(int $ipcType): self
    {
        $this->ipcType = $ipcType;
        return $this;
    }

    public function getIPCType(): int
    {
        return $this->ipcType;
    }

    public function setMsgQueueKey(int $msgQueueKey): self
    {
        $this->msgQueueKey = $msgQueueKey;
        return $this;
    }

    public function getMsgQueueKey(): int
    {
        return $this->msgQueueKey;
    }
}
