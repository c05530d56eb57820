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

    private ?Coroutine\Socket $exported = null;

    private mixed $queue = null;

    private int $queueMode = 2;

    private float $timeout = 0;

    private static int $count = 0;

    /** Whether both ends stay open, since the next process in its place of a pool or a server has them too. */
    private bool $isPooled = false;

    private float $begun = 0;

    private bool $pauses = false;

    public function __construct(callable $callback, private readonly bool $redirect_stdin_and_stdout = false, private readonly int $pipe_type = SOCK_DGRAM, private bool $enable_coroutine = false)
    {
        $this->callback = $callback;
        $this->id = ++self::$count;
        if ($pipe_type !== 0 || $redirect_stdin_and_stdout) {
            $is_stream = $pipe_type === SOCK_STREAM || $redirect_stdin_and_stdout;
            $this->ends = stream_socket_pair(STREAM_PF_UNIX, $is_stream ? STREAM_SOCK_STREAM : STREAM_SOCK_DGRAM, 0);
            $this->end = $this->ends[0];
            stream_set_read_buffer($this->ends[0], 0);
            stream_set_read_buffer($this->ends[1], 0);
            $this->pipe = Engine\descriptor($this->end);
        }
    }

    /** @internal the ends of the parent and of the child, which stay open */
    public function share(): ?array
    {
        $this->isPooled = true;
        return $this->ends;
    }

    /** @internal after its end, at once or, if it has ended within a second of its start, after one */
    public function restart(): int|false
    {
        $this->pauses = microtime(true) - $this->begun < ($this->pauses ? 2 : 1);
        $this->pid = null;
        return $this->start();
    }

    public function start(): int|false
    {
        if ($this->pid !== null && posix_kill($this->pid, 0)) {
            return Engine\warn('Swoole\Process::start(): process has already been started');
        }
        // What is buffered would be printed twice.
        fflush(STDOUT);
        $this->begun = microtime(true);
        $pid = pcntl_fork();
        if ($pid !== 0) {
            $this->pid = $pid > 0 ? $pid : null;
            if ($pid > 0 && $this->ends !== null && !$this->isPooled) {
                fclose($this->ends[1]);
                $this->ends = null;
            }
            return $pid > 0 ? $pid : false;
        }
        Engine\id() === -1 || Engine\take_root();
        Timer::forget();
        $this->pid = getmypid();
        if ($this->ends !== null) {
            $this->isPooled || fclose($this->ends[0]);
            $this->end = $this->ends[1];
            $this->pipe = Engine\descriptor($this->end);
        }
        if ($this->redirect_stdin_and_stdout) {
            Engine\redirect($this->pipe);
        }
        $code = 0;
        try {
            $this->pauses && sleep(1);
            $this->enable_coroutine ? Coroutine\run($this->callback, $this) : ($this->callback)($this);
            // Timers, watched descriptors and coroutines of the callback.
            Engine\run();
        } catch (\Throwable $thrown) {
            $text = "Uncaught $thrown\n  thrown in {$thrown->getFile()} on line {$thrown->getLine()}\n";
            ini_get('display_errors') ? print("\nFatal error: $text") : fwrite(STDERR, "PHP Fatal error:  $text");
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
        if ($data === '' || $this->end === null) {
            return Engine\warn('Swoole\Process::write(): ' . ($data === '' ? 'the data to send is empty' : 'no pipe, cannot write into pipe'));
        }
        $sent = @fwrite($this->end, $data);
        return $sent === 0 ? false : $sent;
    }

    public function read(int $buffer_size = 8192): string|false
    {
        if ($this->end === null) {
            return Engine\warn('Swoole\Process::read(): no pipe, cannot read from pipe');
        }
        if ($buffer_size <= 0) {
            return Engine\warn('Swoole\Process::read(): the size must be greater than 0');
        }
        if ($this->timeout > 0 && Engine\wait_descriptor($this->end, SWOOLE_EVENT_READ, $this->timeout) === 0) {
            return false;
        }
        return @stream_socket_recvfrom($this->end, $buffer_size);
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
        return $this->end === null ? false : ($this->exported ??= Coroutine\Socket::import($this->end));
    }

    public function setTimeout(float $seconds): bool
    {
        $this->timeout = $seconds;
        return true;
    }

    public function setBlocking(bool $blocking): bool
    {
        return $this->end !== null && stream_set_blocking($this->end, $blocking);
    }

    public function set(array $settings): void
    {
        $this->enable_coroutine = (bool) ($settings['enable_coroutine'] ?? $this->enable_coroutine);
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
        $this->queueMode = $mode;
        if ($this->queue !== null && $capacity > 0) {
            msg_set_queue($this->queue, ['msg_qbytes' => $capacity]);
        }
        $this->msgQueueId = $this->msgQueueKey;
        return $this->queue !== null;
    }

    public function push(string $data): bool
    {
        if ($this->queue === null) {
            return Engine\warn('Swoole\Process::push(): no queue, call useQueue() first');
        }
        return @msg_send($this->queue, 1, $data, false, ($this->queueMode & self::IPC_NOWAIT) === 0);
    }

    public function pop(int $size = 65536): string|false
    {
        if ($this->queue === null) {
            return Engine\warn('Swoole\Process::pop(): no queue, call useQueue() first');
        }
        $flags = $this->queueMode & self::IPC_NOWAIT ? MSG_IPC_NOWAIT : 0;
        return @msg_receive($this->queue, 0, $type, $size, $data, false, $flags) ? $data : false;
    }

    public function statQueue(): array|false
    {
        $stat = $this->queue === null ? false : msg_stat_queue($this->queue);
        return $stat === false ? false : ['queue_num' => $stat['msg_qnum'], 'queue_bytes' => $stat['msg_qbytes']];
    }

    public function freeQueue(): bool
    {
        $was = $this->queue !== null && msg_remove_queue($this->queue);
        $this->queue = null;
        return $was;
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

    /** The handler runs between two instructions of PHP, or when a wait is interrupted. */
    public static function signal(int $signal_no, ?callable $callback = null): bool
    {
        pcntl_async_signals(true);
        return pcntl_signal($signal_no, $callback ?? SIG_DFL);
    }

    /** Sends a signal again and again (setitimer(2)); below 0 it ends that. */
    public static function alarm(int $usec, int $type = 0): bool
    {
        return Engine\alarm($usec, $type);
    }

    public static function daemon(bool $nochdir = true, bool $noclose = true, array $pipes = []): bool
    {
        if (Engine\is_worker()) {
            return Engine\warn('Swoole\Process::daemon(): a worker of a server cannot become a daemon');
        }
        $pid = Engine\fork_on();
        if ($pid < 0 || posix_setsid() < 0 || !$nochdir && !chdir('/')) {
            return false;
        }
        if (!$noclose) {
            $null = fopen('/dev/null', 'r+');
            Engine\redirect(Engine\descriptor($null));
        }
        return true;
    }

    public static function setAffinity(array $cpu_settings): bool
    {
        return Engine\set_affinity($cpu_settings);
    }

    public static function getAffinity(): array
    {
        return Engine\get_affinity();
    }
}

namespace Outboard\Engine\Swoole;

/** Goes on in a child that does not end with its parent, which leaves. Below 0: there is no child. */
function fork_on(): int
{
    [$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $pid = pcntl_fork();
    if ($pid > 0) {
        // Until then the child would be ended with this process.
        fread($here, 1);
        leave(0);
    }
    if ($pid === 0) {
        outlive();
        fwrite($there, '.');
    }
    return $pid;
}
