<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

class Exception extends \Exception
{
}

class Error extends \Error
{
}

class ExitException extends Exception
{
    public function getStatus(): mixed
    {
        return $this->getCode();
    }

    public function getFlags(): int
    {
        return 0;
    }
}

class Coroutine
{
    /** @var array<string, mixed> */
    private static array $options = [];

    public static function create(callable $func, mixed ...$params): int|false
    {
        if (Engine\counts()[0] >= (self::$options['max_coroutine'] ?? 100000)) {
            trigger_error('exceed max number of coroutine ' . self::$options['max_coroutine'], E_USER_WARNING);
            return false;
        }
        return Engine\create($func, ...$params);
    }

    public static function defer(callable $callback): void
    {
        Engine\defer($callback);
    }

    public static function set(array $options): void
    {
        self::$options = $options + self::$options;
    }

    public static function getOptions(): ?array
    {
        return self::$options === [] ? null : self::$options;
    }

    public static function exists(int $cid): bool
    {
        return Engine\exists($cid);
    }

    public static function yield(): bool
    {
        return self::suspend();
    }

    public static function suspend(float $timeout = -1): bool
    {
        if (Engine\id() === -1) {
            throw new Error('API must be called in the coroutine');
        }
        return Engine\reason(Engine\pause($timeout)) === 1;
    }

    public static function resume(int $cid): bool
    {
        if (Engine\resume($cid)) {
            return true;
        }
        trigger_error(Engine\exists($cid) ? 'you can not resume the coroutine which is in IO operation' : "coroutine#$cid does not exist", E_USER_WARNING);
        return false;
    }

    public static function cancel(int $cid, bool $throw_exception = false): bool
    {
        return Engine\cancel($cid);
    }

    public static function isCanceled(): bool
    {
        return Engine\Reasons::$last === 2;
    }

    public static function join(array $cids, float $timeout = -1): bool
    {
        if ($cids === [] || in_array(Engine\id(), $cids, true)) {
            return false;
        }
        $cids = array_filter($cids, Engine\exists(...));
        if ($cids === []) {
            return false;
        }
        $until = $timeout > 0 ? microtime(true) + $timeout : INF;
        foreach ($cids as $cid) {
            $left = $until === INF ? -1.0 : max($until - microtime(true), 0.0);
            if (Engine\reason(Engine\await($cid, $left)) !== 1) {
                return false;
            }
        }
        return true;
    }

    public static function sleep(float $seconds): bool
    {
        return Engine\id() === -1 ? usleep((int) ($seconds * 1e6)) ?? true : Engine\reason(Engine\wait(max($seconds, 0.0))) === 0;
    }

    public static function getCid(): int
    {
        return Engine\id();
    }

    public static function getuid(): int
    {
        return Engine\id();
    }

    public static function getPcid(int $cid = 0): int|false
    {
        return Engine\parent($cid) ?? false;
    }

    public static function getContext(int $cid = 0): ?Coroutine\Context
    {
        $context = Engine\context($cid);
        return match ($context) {
            null => Engine\context($cid, new Coroutine\Context()),
            false => null,
            default => $context,
        };
    }

    public static function getBackTrace(int $cid = 0, int $options = DEBUG_BACKTRACE_PROVIDE_OBJECT, int $limit = 0): array|false
    {
        if ($cid === 0 || $cid === Engine\id()) {
            return array_slice(debug_backtrace($options, $limit === 0 ? 0 : $limit + 1), 1);
        }
        return Engine\trace($cid, $options, $limit);
    }

    public static function printBackTrace(int $cid = 0, int $options = 0, int $limit = 0): void
    {
        foreach (self::getBackTrace($cid, $options | DEBUG_BACKTRACE_IGNORE_ARGS, $limit) ?: [] as $number => $frame) {
            $call = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'];
            echo "#$number  $call() called at [", $frame['file'] ?? '', ':', $frame['line'] ?? 0, "]\n";
        }
    }

    public static function getElapsed(int $cid = 0): int
    {
        return Engine\elapsed($cid);
    }

    public static function getStackUsage(int $cid = 0): int|false
    {
        return Engine\exists($cid ?: Engine\id()) ? 8192 : false;
    }

    public static function stats(): array
    {
        [$count, $peak, $created] = Engine\counts();
        return [
            'event_num' => 0,
            'signal_listener_num' => 0,
            'aio_task_num' => 0,
            'aio_worker_num' => 0,
            'aio_queue_size' => 0,
            'c_stack_size' => 2097152,
            'coroutine_num' => $count,
            'coroutine_peak_num' => $peak,
            'coroutine_last_cid' => $created,
        ];
    }

    public static function list(): Coroutine\Iterator
    {
        return new Coroutine\Iterator(Engine\ids());
    }

    public static function listCoroutines(): Coroutine\Iterator
    {
        return self::list();
    }

    public static function enableScheduler(): bool
    {
        return false;
    }

    public static function disableScheduler(): bool
    {
        return true;
    }

    public static function getExecuteTime(): int
    {
        return Engine\elapsed() * 1000;
    }

    public static function exec(string $command, bool $get_error_stream = false): array|false
    {
        return Coroutine\System::exec($command, $get_error_stream);
    }

    public static function gethostbyname(string $domain_name, int $type = AF_INET, float $timeout = -1): string|false
    {
        return Coroutine\System::gethostbyname($domain_name, $type, $timeout);
    }

    public static function dnsLookup(string $domain_name, float $timeout = 60, int $type = AF_INET): string|false
    {
        return Coroutine\System::dnsLookup($domain_name, $timeout, $type);
    }

    public static function getaddrinfo(string $domain, int $family = AF_INET, int $socktype = SOCK_STREAM, int $protocol = STREAM_IPPROTO_TCP, ?string $service = null, float $timeout = -1): array|false
    {
        return Coroutine\System::getaddrinfo($domain, $family, $socktype, $protocol, $service, $timeout);
    }

    public static function readFile(string $filename, int $flag = 0): string|false
    {
        return Coroutine\System::readFile($filename, $flag);
    }

    public static function writeFile(string $filename, string $content, int $flags = 0): int|false
    {
        return Coroutine\System::writeFile($filename, $content, $flags);
    }

    public static function fread(mixed $handle, int $length = 0): string|false
    {
        return Coroutine\System::fread($handle, $length);
    }

    public static function fgets(mixed $handle): string|false
    {
        return Coroutine\System::fgets($handle);
    }

    public static function fwrite(mixed $handle, string $data, int $length = 0): int|false
    {
        return Coroutine\System::fwrite($handle, $data, $length);
    }

    public static function statvfs(string $path): array
    {
        return Coroutine\System::statvfs($path);
    }

    public static function wait(float $timeout = -1): array|false
    {
        return Coroutine\System::wait($timeout);
    }

    public static function waitPid(int $pid, float $timeout = -1): array|false
    {
        return Coroutine\System::waitPid($pid, $timeout);
    }

    public static function waitSignal(int|array $signo, float $timeout = -1): int|bool
    {
        return Coroutine\System::waitSignal($signo, $timeout);
    }

    public static function waitEvent(mixed $socket, int $events = SWOOLE_EVENT_READ, float $timeout = -1): int|false
    {
        return Coroutine\System::waitEvent($socket, $events, $timeout);
    }
}

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;

class Context extends \ArrayObject
{
    public function __construct()
    {
        parent::__construct([], \ArrayObject::ARRAY_AS_PROPS);
    }
}

class Iterator extends \ArrayIterator
{
}

class Channel
{
    public int $capacity;

    public int $errCode = 0;

    private \SplQueue $values;

    private \SplQueue $consumers;

    private \SplQueue $producers;

    private bool $closed = false;

    public function __construct(int $size = 1)
    {
        $this->capacity = max($size, 1);
        $this->values = new \SplQueue();
        $this->consumers = new \SplQueue();
        $this->producers = new \SplQueue();
    }

    public function push(mixed $data, float $timeout = -1): bool
    {
        if ($this->closed) {
            $this->errCode = SWOOLE_CHANNEL_CLOSED;
            return false;
        }
        while (count($this->values) >= $this->capacity) {
            if (!$this->wait($this->producers, $timeout)) {
                return false;
            }
        }
        $this->errCode = SWOOLE_CHANNEL_OK;
        $this->values->enqueue($data);
        self::wakeOne($this->consumers);
        return true;
    }

    public function pop(float $timeout = -1): mixed
    {
        while (count($this->values) === 0) {
            if ($this->closed) {
                $this->errCode = SWOOLE_CHANNEL_CLOSED;
                return false;
            }
            if (!$this->wait($this->consumers, $timeout)) {
                return false;
            }
        }
        $this->errCode = SWOOLE_CHANNEL_OK;
        $data = $this->values->dequeue();
        self::wakeOne($this->producers);
        return $data;
    }

    public function isEmpty(): bool
    {
        return count($this->values) === 0;
    }

    public function isFull(): bool
    {
        return count($this->values) >= $this->capacity;
    }

    public function length(): int
    {
        return count($this->values);
    }

    public function stats(): array
    {
        return ['consumer_num' => count($this->consumers), 'producer_num' => count($this->producers), 'queue_num' => count($this->values)];
    }

    public function close(): bool
    {
        if ($this->closed) {
            return false;
        }
        $this->closed = true;
        while (self::wakeOne($this->producers) || self::wakeOne($this->consumers)) {
            continue;
        }
        return true;
    }

    /** False when the channel was closed, the time is over or the wait was cancelled. */
    private function wait(\SplQueue $queue, float $timeout): bool
    {
        $waiter = \Outboard\Engine\current();
        $queue->enqueue($waiter);
        $reason = Engine\reason(Engine\wait($timeout > 0 ? $timeout : -1.0));
        if ($reason === 1) {
            if ($this->closed && count($this->values) === 0) {
                $this->errCode = SWOOLE_CHANNEL_CLOSED;
                return false;
            }
            return true;
        }
        foreach ($queue as $at => $other) {
            if ($other === $waiter) {
                $queue->offsetUnset($at);
                break;
            }
        }
        $this->errCode = $reason === 0 ? SWOOLE_CHANNEL_TIMEOUT : SWOOLE_CHANNEL_CANCELED;
        return false;
    }

    private static function wakeOne(\SplQueue $queue): bool
    {
        while (count($queue) > 0) {
            if (Engine\wake($queue->dequeue())) {
                return true;
            }
        }
        return false;
    }
}

class WaitGroup
{
    protected int $count = 0;

    /** @var list<int> */
    private array $waiters = [];

    public function __construct(int $delta = 0)
    {
        if ($delta > 0) {
            $this->add($delta);
        }
    }

    public function add(int $delta = 1): void
    {
        if ($this->count + $delta < 0) {
            throw new \InvalidArgumentException('WaitGroup misuse: negative counter');
        }
        $this->count += $delta;
    }

    public function done(): void
    {
        if (--$this->count < 0) {
            throw new \BadMethodCallException('WaitGroup misuse: negative counter');
        }
        if ($this->count === 0) {
            $waiters = $this->waiters;
            $this->waiters = [];
            foreach ($waiters as $waiter) {
                Engine\wake($waiter);
            }
        }
    }

    public function wait(float $timeout = -1): bool
    {
        if ($this->count === 0) {
            return true;
        }
        $this->waiters[] = \Outboard\Engine\current();
        return Engine\reason(Engine\wait($timeout > 0 ? $timeout : -1.0)) === 1;
    }

    public function count(): int
    {
        return $this->count;
    }
}

class Barrier
{
    private \stdClass $state;

    private function __construct()
    {
        $this->state = (object) ['waiter' => 0, 'gone' => false];
    }

    public function __destruct()
    {
        $this->state->gone = true;
        if ($this->state->waiter !== 0) {
            Engine\wake($this->state->waiter);
        }
    }

    public static function make(): static
    {
        return new static();
    }

    public static function wait(?self &$barrier, float $timeout = -1): void
    {
        if ($barrier === null) {
            return;
        }
        $state = $barrier->state;
        if ($state->waiter !== 0) {
            throw new \Swoole\Exception('The barrier is waiting, and can not be waited again');
        }
        $barrier = null;
        if (!$state->gone) {
            $state->waiter = \Outboard\Engine\current();
            if (Engine\reason(Engine\wait($timeout > 0 ? $timeout : -1.0)) !== 1) {
                $state->waiter = 0;
            }
        }
    }
}

class Scheduler
{
    /** @var list<array{callable, array}> */
    private array $tasks = [];

    public function add(callable $func, mixed ...$params): bool
    {
        $this->tasks[] = [$func, $params];
        return true;
    }

    public function parallel(int $n, callable $func, mixed ...$params): bool
    {
        for ($i = 0; $i < $n; $i++) {
            $this->add($func, ...$params);
        }
        return true;
    }

    public function set(array $options): void
    {
        Coroutine::set($options);
    }

    public function getOptions(): ?array
    {
        return Coroutine::getOptions();
    }

    public function start(): bool
    {
        if (Engine\id() !== -1 || !Engine\is_main()) {
            trigger_error('eventLoop has already been created. unable to start Swoole\Coroutine\Scheduler', E_USER_WARNING);
            return false;
        }
        $tasks = $this->tasks;
        $this->tasks = [];
        foreach ($tasks as [$func, $params]) {
            Coroutine::create($func, ...$params);
        }
        Engine\run();
        return true;
    }
}

class System
{
    public static function sleep(float $seconds): bool
    {
        return Coroutine::sleep($seconds);
    }

    public static function exec(string $command, bool $get_error_stream = false): array|false
    {
        $process = proc_open($get_error_stream ? "($command) 2>&1" : $command, [1 => ['pipe', 'w']], $pipes);
        if ($process === false) {
            return false;
        }
        $output = stream_get_contents($pipes[1]);
        fclose($pipes[1]);
        $code = proc_close($process);
        return ['code' => $code, 'signal' => 0, 'output' => $output];
    }

    public static function readFile(string $filename, int $flag = 0): string|false
    {
        return file_get_contents($filename);
    }

    public static function writeFile(string $filename, string $fileContent, int $flags = 0): int|false
    {
        return file_put_contents($filename, $fileContent, $flags);
    }

    public static function fread(mixed $handle, int $length = 0): string|false
    {
        return $length > 0 ? fread($handle, $length) : stream_get_contents($handle);
    }

    public static function fwrite(mixed $handle, string $data, int $length = 0): int|false
    {
        return $length > 0 ? fwrite($handle, $data, $length) : fwrite($handle, $data);
    }

    public static function fgets(mixed $handle): string|false
    {
        return fgets($handle);
    }

    public static function gethostbyname(string $domain_name, int $type = AF_INET, float $timeout = -1): string|false
    {
        $address = gethostbyname($domain_name);
        return $address === $domain_name && !filter_var($address, FILTER_VALIDATE_IP) ? false : $address;
    }

    public static function dnsLookup(string $domain_name, float $timeout = 60, int $type = AF_INET): string|false
    {
        return self::gethostbyname($domain_name, $type, $timeout);
    }

    public static function getaddrinfo(string $domain, int $family = AF_INET, int $socktype = SOCK_STREAM, int $protocol = STREAM_IPPROTO_TCP, ?string $service = null, float $timeout = -1): array|false
    {
        $addresses = gethostbynamel($domain);
        return $addresses === false || $addresses === [] ? false : $addresses;
    }

    public static function statvfs(string $path): array
    {
        $total = (int) disk_total_space($path);
        $free = (int) disk_free_space($path);
        return ['bsize' => 4096, 'frsize' => 4096, 'blocks' => intdiv($total, 4096), 'bfree' => intdiv($free, 4096), 'bavail' => intdiv($free, 4096)];
    }

    public static function wait(float $timeout = -1): array|false
    {
        return self::waitPid(-1, $timeout);
    }

    public static function waitPid(int $pid, float $timeout = -1): array|false
    {
        $until = $timeout > 0 ? microtime(true) + $timeout : INF;
        $pause = 0.001;
        do {
            $ended = pcntl_waitpid($pid, $status, WNOHANG);
            if ($ended > 0) {
                return [
                    'pid' => $ended,
                    'code' => pcntl_wifexited($status) ? pcntl_wexitstatus($status) : 0,
                    'signal' => pcntl_wifsignaled($status) ? pcntl_wtermsig($status) : 0,
                ];
            }
            if ($ended < 0 || !Coroutine::sleep($pause)) {
                return false;
            }
            $pause = min($pause * 2, 0.02);
        } while (microtime(true) < $until);
        return false;
    }

    public static function waitSignal(int|array $signals, float $timeout = -1): int|bool
    {
        $until = $timeout > 0 ? microtime(true) + $timeout : INF;
        $came = false;
        $signals = (array) $signals;
        $former = [];
        foreach ($signals as $signal) {
            $former[$signal] = pcntl_signal_get_handler($signal);
            pcntl_signal($signal, static function (int $signal) use (&$came): void {
                $came = $signal;
            });
        }
        while ($came === false && microtime(true) < $until && Coroutine::sleep(0.005)) {
            pcntl_signal_dispatch();
        }
        foreach ($former as $signal => $handler) {
            pcntl_signal($signal, $handler);
        }
        return $came === false ? false : (count($signals) === 1 ? true : $came);
    }

    public static function waitEvent(mixed $socket, int $events = SWOOLE_EVENT_READ, float $timeout = -1): int|false
    {
        $ready = Engine\wait_descriptor($socket, $events, $timeout);
        return $ready === 0 ? false : $ready;
    }
}

function run(callable $func, mixed ...$args): bool
{
    $scheduler = new Scheduler();
    $scheduler->add($func, ...$args);
    return $scheduler->start();
}

function batch(array $tasks, float $timeout = -1): array
{
    $group = new WaitGroup(count($tasks));
    foreach ($tasks as $key => $task) {
        $tasks[$key] = null;
        Coroutine::create(static function () use ($group, &$tasks, $key, $task): void {
            try {
                $tasks[$key] = $task();
            } finally {
                $group->done();
            }
        });
    }
    $group->wait($timeout);
    return $tasks;
}

function parallel(int $n, callable $fn): void
{
    $group = new WaitGroup($n);
    for ($i = 0; $i < $n; $i++) {
        Coroutine::create(static function () use ($group, $fn): void {
            try {
                $fn();
            } finally {
                $group->done();
            }
        });
    }
    $group->wait();
}

function map(array $list, callable $fn, float $timeout = -1): array
{
    return batch(array_map(static fn (mixed $value): \Closure => static fn (): mixed => $fn($value), $list), $timeout);
}

function deadlock_check(): void
{
    Engine\report_deadlock();
}

namespace Co;

function run(callable $func, mixed ...$args): bool
{
    return \Swoole\Coroutine\run($func, ...$args);
}

function go(callable $func, mixed ...$params): int|false
{
    return \Swoole\Coroutine::create($func, ...$params);
}

function defer(callable $callback): void
{
    \Swoole\Coroutine::defer($callback);
}

function batch(array $tasks, float $timeout = -1): array
{
    return \Swoole\Coroutine\batch($tasks, $timeout);
}

function parallel(int $n, callable $fn): void
{
    \Swoole\Coroutine\parallel($n, $fn);
}

function map(array $list, callable $fn, float $timeout = -1): array
{
    return \Swoole\Coroutine\map($list, $fn, $timeout);
}

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

class Runtime
{
    private static int $flags = SWOOLE_HOOK_ALL;

    /** PHP's own functions wait without holding the worker in any case. */
    public static function enableCoroutine(bool|int $enable = true, int $flags = SWOOLE_HOOK_ALL): bool
    {
        self::$flags = is_int($enable) ? $enable : ($enable ? $flags : 0);
        return true;
    }

    public static function getHookFlags(): int
    {
        return self::$flags;
    }

    public static function setHookFlags(int $flags): bool
    {
        self::$flags = $flags;
        return true;
    }
}

class Timer
{
    /** @var array<int, array{timer: \Outboard\Timer, ms: int, again: bool, due: float, rounds: int}> */
    private static array $timers = [];

    private static int $last = 0;

    public static function set(array $settings): bool
    {
        return true;
    }

    public static function tick(int $ms, callable $callback, mixed ...$params): int|false
    {
        return self::add($ms, true, static fn (int $id): mixed => $callback($id, ...$params));
    }

    public static function after(int $ms, callable $callback, mixed ...$params): int|false
    {
        return self::add($ms, false, static fn (int $id): mixed => $callback(...$params));
    }

    public static function exists(int $timer_id): bool
    {
        return isset(self::$timers[$timer_id]);
    }

    public static function info(int $timer_id): ?array
    {
        $timer = self::$timers[$timer_id] ?? null;
        return $timer === null ? null : [
            'exec_msec' => (int) (($timer['due'] - microtime(true)) * 1000),
            'exec_count' => $timer['rounds'],
            'interval' => $timer['again'] ? $timer['ms'] : 0,
            'round' => $timer['rounds'],
            'removed' => false,
        ];
    }

    public static function stats(): array
    {
        return ['initialized' => self::$timers !== [], 'num' => count(self::$timers), 'round' => 0];
    }

    public static function list(): Timer\Iterator
    {
        return new Timer\Iterator(array_keys(self::$timers));
    }

    public static function clear(int $timer_id): bool
    {
        $timer = self::$timers[$timer_id] ?? null;
        $timer === null ?: $timer['timer']->cancel();
        unset(self::$timers[$timer_id]);
        return $timer !== null;
    }

    public static function clearAll(): bool
    {
        array_map(self::clear(...), array_keys(self::$timers));
        return true;
    }

    private static function add(int $ms, bool $again, \Closure $call): int|false
    {
        if ($ms < 1 || $ms > 86400000) {
            trigger_error('Timer must be greater than or equal to 1 and less than 86400000', E_USER_WARNING);
            return false;
        }
        $id = ++self::$last;
        $run = static function () use ($id, $again, $ms, $call): void {
            if ($again) {
                self::$timers[$id]['rounds']++;
                self::$timers[$id]['due'] = microtime(true) + $ms / 1000;
            } else {
                unset(self::$timers[$id]);
            }
            Engine\create($call, $id);
        };
        $timer = new \Outboard\Timer($ms / 1000, $run, $again);
        self::$timers[$id] = ['timer' => $timer, 'ms' => $ms, 'again' => $again, 'due' => microtime(true) + $ms / 1000, 'rounds' => 0];
        return $id;
    }
}

class Event
{
    /** @var array<int, array{socket: mixed, read: ?callable, write: ?callable, events: int, cid: int}> */
    private static array $watched = [];

    /** @var callable|null */
    private static $cycle = null;

    public static function add(mixed $fd, ?callable $read_callback = null, ?callable $write_callback = null, int $events = SWOOLE_EVENT_READ): int|false
    {
        $number = Engine\descriptor($fd);
        if ($number < 0 || isset(self::$watched[$number])) {
            return false;
        }
        self::$watched[$number] = ['socket' => $fd, 'read' => $read_callback, 'write' => $write_callback, 'events' => $events, 'cid' => 0];
        $cid = Engine\create(static function () use ($number): void {
            while (isset(self::$watched[$number])) {
                $one = self::$watched[$number];
                $ready = Engine\wait_descriptor($one['socket'], $one['events'], -1.0);
                if (!isset(self::$watched[$number])) {
                    return;
                }
                if ($ready & SWOOLE_EVENT_READ && $one['read'] !== null) {
                    ($one['read'])($one['socket']);
                }
                if ($ready & SWOOLE_EVENT_WRITE && isset(self::$watched[$number]) && $one['write'] !== null) {
                    ($one['write'])($one['socket']);
                }
            }
        });
        if (isset(self::$watched[$number])) {
            self::$watched[$number]['cid'] = $cid;
        }
        return $number;
    }

    public static function set(mixed $fd, ?callable $read_callback = null, ?callable $write_callback = null, int $events = 0): bool
    {
        $number = Engine\descriptor($fd);
        if (!isset(self::$watched[$number])) {
            return false;
        }
        $one = self::$watched[$number];
        self::del($fd);
        return self::add($fd, $read_callback ?? $one['read'], $write_callback ?? $one['write'], $events ?: $one['events']) !== false;
    }

    public static function del(mixed $fd): bool
    {
        $number = Engine\descriptor($fd);
        if (!isset(self::$watched[$number])) {
            return false;
        }
        $cid = self::$watched[$number]['cid'];
        unset(self::$watched[$number]);
        Engine\cancel($cid);
        return true;
    }

    public static function isset(mixed $fd, int $events = SWOOLE_EVENT_READ | SWOOLE_EVENT_WRITE): bool
    {
        $number = Engine\descriptor($fd);
        return isset(self::$watched[$number]) && (self::$watched[$number]['events'] & $events) !== 0;
    }

    public static function write(mixed $fd, string $data): bool
    {
        return fwrite($fd, $data) === strlen($data);
    }

    public static function defer(callable $callback): bool
    {
        \Outboard\Engine\spawn($callback, static fn () => null);
        return true;
    }

    public static function cycle(?callable $callback, bool $before = false): bool
    {
        self::$cycle = $callback;
        return true;
    }

    public static function wait(): void
    {
        Engine\run();
    }

    public static function dispatch(): bool
    {
        return true;
    }

    public static function rshutdown(): void
    {
        self::wait();
    }

    public static function exit(): void
    {
        foreach (self::$watched as $one) {
            self::del($one['socket']);
        }
        Timer::clearAll();
    }
}

namespace Swoole\Timer;

class Iterator extends \ArrayIterator
{
}

namespace Outboard\Engine\Swoole;

/** @internal why the last wait was over */
final class Reasons
{
    public static int $last = 0;
}

function reason(int $reason): int
{
    return Reasons::$last = $reason;
}

/** Until nothing is left to be waited for; what can never go on is reported. */
function run(): void
{
    if (run_all() > 0) {
        report_deadlock();
    }
}

function report_deadlock(): void
{
    static $reported = [];
    $ids = array_diff(ids(), $reported);
    $reported = array_merge($reported, $ids);
    if ($ids === []) {
        return;
    }
    $text = '[FATAL ERROR]: all coroutines (count: ' . count($ids) . ") are asleep - deadlock!\n";
    foreach (array_slice($ids, 0, 32) as $id) {
        $text .= "\n [Coroutine-$id]\n";
        foreach (trace($id, DEBUG_BACKTRACE_IGNORE_ARGS, 0) ?: [] as $number => $frame) {
            $call = ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'];
            $text .= "#$number $call() called at [" . ($frame['file'] ?? '') . ':' . ($frame['line'] ?? 0) . "]\n";
        }
    }
    fwrite(STDERR, $text);
}

/** After the script's last line. */
function end(): void
{
    if (!is_worker()) {
        run();
    }
}
