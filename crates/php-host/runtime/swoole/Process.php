<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

/** A forked process, by way of pcntl. */
class Process
{
    public const IPC_NOWAIT = 256;

    public const PIPE_MASTER = 1;

    public const PIPE_WORKER = 2;

    public const PIPE_READ = 3;

    public const PIPE_WRITE = 4;

    public $pipe = null;

    public $msgQueueId = null;

    public $msgQueueKey = null;

    public $pid = null;

    public $id = null;

    /** @var callable */
    private $callback;

    /** @var array{resource, resource}|null the parent's end, then the child's */
    private ?array $ends = null;

    private mixed $end = null;

    private mixed $queue = null;

    private float $timeout = 0;

    private static array $handlers = [];

    public function __construct(callable $callback, private readonly bool $redirect_stdin_and_stdout = false, private readonly int $pipe_type = SOCK_DGRAM, private readonly bool $enable_coroutine = false)
    {
        $this->callback = $callback;
        if ($pipe_type !== 0 || $redirect_stdin_and_stdout) {
            $is_stream = $pipe_type === SOCK_STREAM || $redirect_stdin_and_stdout;
            $this->ends = stream_socket_pair(STREAM_PF_UNIX, $is_stream ? STREAM_SOCK_STREAM : STREAM_SOCK_DGRAM, 0);
            $this->end = $this->ends[0];
            stream_set_read_buffer($this->ends[0], 0);
            stream_set_read_buffer($this->ends[1], 0);
            $this->pipe = Engine\descriptor($this->end);
        }
    }

    public function start(): int|false
    {
        $pid = pcntl_fork();
        if ($pid !== 0) {
            $this->pid = $pid > 0 ? $pid : null;
            if ($pid > 0 && $this->ends !== null) {
                fclose($this->ends[1]);
                $this->ends = null;
            }
            return $pid > 0 ? $pid : false;
        }
        $this->pid = getmypid();
        if ($this->ends !== null) {
            fclose($this->ends[0]);
            $this->end = $this->ends[1];
            $this->pipe = Engine\descriptor($this->end);
        }
        if ($this->redirect_stdin_and_stdout) {
            ob_start(function (string $text): string {
                fwrite($this->end, $text);
                return '';
            }, 1);
        }
        $code = 0;
        try {
            ($this->callback)($this);
        } catch (\Throwable $thrown) {
            fwrite(STDERR, "$thrown\n");
            $code = 255;
        }
        while (ob_get_level() > 0 && @ob_end_flush()) {
            continue;
        }
        $this->exit($code);
        return false;
    }

    public function exit(int $exit_code = 0): void
    {
        // Nothing of the parent's is to be ended here.
        Engine\leave($exit_code);
    }

    public function write(string $data): int|false
    {
        return $this->end === null ? false : fwrite($this->end, $data);
    }

    public function read(int $buffer_size = 8192): string|false
    {
        if ($this->end === null) {
            return false;
        }
        if ($this->timeout > 0) {
            stream_set_timeout($this->end, (int) $this->timeout, (int) (fmod($this->timeout, 1) * 1e6));
        }
        $data = stream_socket_recvfrom($this->end, $buffer_size);
        return $data === '' && !feof($this->end) ? '' : $data;
    }

    public function close(int $which = 0): bool
    {
        $was = $this->end !== null;
        $was && fclose($this->end);
        $this->end = null;
        return $was;
    }

    public function exportSocket(): Coroutine\Socket|false
    {
        return $this->end === null ? false : Coroutine\Socket::of($this->end);
    }

    public function setTimeout(float $seconds): bool
    {
        $this->timeout = $seconds;
        return true;
    }

    public function setBlocking(bool $blocking): void
    {
        $this->end === null || stream_set_blocking($this->end, $blocking);
    }

    public function set(array $settings): void
    {
    }

    public function exec(string $exec_file, array $args): bool
    {
        return pcntl_exec($exec_file, $args);
    }

    public function name(string $process_name): bool
    {
        return swoole_set_process_name($process_name);
    }

    public function setPriority(int $which, int $priority, ?int $who = null): bool
    {
        return pcntl_setpriority($priority, $who ?? $this->pid, $which);
    }

    public function getPriority(int $which, ?int $who = null): int|false
    {
        return pcntl_getpriority($who ?? $this->pid, $which);
    }

    public function useQueue(int $key = 0, int $mode = 2, int $capacity = -1): bool
    {
        $this->msgQueueKey = $key ?: random_int(1, PHP_INT_MAX >> 33);
        $this->queue = msg_get_queue($this->msgQueueKey) ?: null;
        return $this->queue !== null;
    }

    public function push(string $data): bool
    {
        return $this->queue !== null && msg_send($this->queue, 1, $data, false);
    }

    public function pop(int $size = 65536): string|false
    {
        return $this->queue !== null && msg_receive($this->queue, 0, $type, $size, $data, false) ? $data : false;
    }

    public function statQueue(): array|false
    {
        $stat = $this->queue === null ? false : msg_stat_queue($this->queue);
        return $stat === false ? false : ['queue_num' => $stat['msg_qnum'], 'queue_bytes' => $stat['msg_qbytes']];
    }

    public function freeQueue(): bool
    {
        return $this->queue !== null && msg_remove_queue($this->queue);
    }

    public static function kill(int $pid, int $signal_no = SIGTERM): bool
    {
        return posix_kill($pid, $signal_no);
    }

    public static function wait(bool $blocking = true): array|false
    {
        $pid = pcntl_waitpid(-1, $status, $blocking ? 0 : WNOHANG);
        return $pid <= 0 ? false : [
            'pid' => $pid,
            'code' => pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 0,
            'signal' => pcntl_wifsignaled($status) ? pcntl_wtermsig($status) : 0,
        ];
    }

    public static function signal(int $signal_no, ?callable $callback): bool
    {
        pcntl_async_signals(true);
        self::$handlers[$signal_no] = $callback;
        return pcntl_signal($signal_no, $callback ?? SIG_DFL);
    }

    public static function alarm(int $usec, int $type = 0): bool
    {
        return $usec >= 0 && pcntl_alarm(max(1, intdiv($usec, 1000000))) >= 0;
    }

    public static function daemon(bool $nochdir = true, bool $noclose = true, array $pipes = []): bool
    {
        $pid = pcntl_fork();
        if ($pid > 0) {
            Engine\leave(0);
        }
        return $pid === 0 && posix_setsid() > 0 && ($nochdir || chdir('/'));
    }

    public static function setAffinity(array $cpu_settings): bool
    {
        return false;
    }

    public static function getAffinity(): array
    {
        return range(0, swoole_cpu_num() - 1);
    }
}

namespace Swoole\Process;

use Outboard\Engine\Swoole as Engine;
use Swoole\Process;

/** Processes that are started again when they end. */
class Pool
{
    public int $master_pid = -1;

    public int $workerPid = -1;

    public int $workerId = -1;

    public ?array $workers = null;

    public bool $workerRunning = true;

    public bool $running = true;

    /** @var array<string, callable> */
    private array $handlers = [];

    /** @var array<int, int> numbers by process */
    private array $pids = [];

    /** @var array<int, Process> */
    private array $processes = [];

    public function __construct(private readonly int $worker_num, int $ipc_type = SWOOLE_IPC_NONE, int $msgqueue_key = 0, private readonly bool $enable_coroutine = false)
    {
        if ($ipc_type !== SWOOLE_IPC_NONE) {
            throw new \Swoole\Exception('only SWOOLE_IPC_NONE is supported');
        }
    }

    public function set(array $settings): void
    {
    }

    public function on(string $name, callable $callback): bool
    {
        $this->handlers[strtolower($name)] = $callback;
        return true;
    }

    public function getProcess(int $work_id = -1): Process|false
    {
        return $this->processes[$work_id < 0 ? $this->workerId : $work_id] ?? false;
    }

    public function listen(string $host, int $port = 0, int $backlog = 2048): bool
    {
        return false;
    }

    public function write(string $data): bool
    {
        return false;
    }

    public function sendMessage(string $data, int $dst_worker_id): bool
    {
        return false;
    }

    public function start(): bool
    {
        $this->master_pid = getmypid();
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, function (): void {
            $this->running = false;
        });
        for ($number = 0; $number < $this->worker_num; $number++) {
            $this->begin($number);
        }
        while ($this->running) {
            $ended = pcntl_waitpid(-1, $status, WNOHANG);
            if ($ended > 0 && isset($this->pids[$ended]) && $this->running) {
                $number = $this->pids[$ended];
                unset($this->pids[$ended]);
                $this->begin($number);
            } elseif ($ended <= 0) {
                usleep(5000);
            }
        }
        foreach (array_keys($this->pids) as $pid) {
            posix_kill($pid, SIGTERM);
        }
        foreach (array_keys($this->pids) as $pid) {
            pcntl_waitpid($pid, $status);
        }
        if (isset($this->handlers['shutdown'])) {
            ($this->handlers['shutdown'])($this);
        }
        return true;
    }

    public function stop(): void
    {
        $this->workerRunning = false;
    }

    public function shutdown(): bool
    {
        return $this->master_pid > 0 && posix_kill($this->master_pid, SIGTERM);
    }

    public function detach(): bool
    {
        return false;
    }

    private function begin(int $number): void
    {
        $process = new Process(function (Process $process) use ($number): void {
            pcntl_signal(SIGTERM, SIG_DFL);
            $this->workerId = $number;
            $this->workerPid = getmypid();
            $this->processes[$number] = $process;
            $start = function () use ($number): void {
                if (isset($this->handlers['workerstart'])) {
                    ($this->handlers['workerstart'])($this, $number);
                }
                if (isset($this->handlers['workerstop'])) {
                    ($this->handlers['workerstop'])($this, $number);
                }
            };
            $this->enable_coroutine ? \Swoole\Coroutine\run($start) : $start();
        });
        $this->processes[$number] = $process;
        $pid = $process->start();
        if ($pid !== false) {
            $this->pids[$pid] = $number;
        }
    }
}

class Manager
{
    /** @var list<array{callable, bool}> */
    private array $tasks = [];

    public function __construct(int $ipcType = SWOOLE_IPC_NONE, int $msgQueueKey = 0)
    {
    }

    public function add(callable $func, bool $enableCoroutine = false): self
    {
        return $this->addBatch(1, $func, $enableCoroutine);
    }

    public function addBatch(int $workerNum, callable $func, bool $enableCoroutine = false): self
    {
        for ($i = 0; $i < $workerNum; $i++) {
            $this->tasks[] = [$func, $enableCoroutine];
        }
        return $this;
    }

    public function start(): void
    {
        $pool = new Pool(count($this->tasks));
        $pool->on('workerstart', function (Pool $pool, int $number): void {
            [$func, $concurrent] = $this->tasks[$number];
            $concurrent ? \Swoole\Coroutine\run(static fn (): mixed => $func($pool, $number)) : $func($pool, $number);
        });
        $pool->start();
    }
}
