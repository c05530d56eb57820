<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

class Coroutine
{
    /** @var array<string, mixed> */
    private static array $options = [];

    public static function create(callable $func, mixed ...$params): int|false
    {
        return Engine\create($func, ...$params);
    }

    public static function defer(callable $callback): void
    {
        Engine\defer($callback);
    }

    public static function set(array $options): void
    {
        self::$options = $options + self::$options;
        foreach ($options as $name => $value) {
            match ($name) {
                'max_coroutine', 'max_coro_num' => Engine\set_limit((int) $value),
                'c_stack_size', 'stack_size' => Engine\set_stack_bytes((int) $value),
                'enable_preemptive_scheduler' => Engine\set_preemptive((bool) $value),
                default => null,
            };
        }
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
        return Engine\pause($timeout) === 1 || self::fail(self::reason());
    }

    /** Why the wait that has just ended without success did so. */
    private static function reason(): int
    {
        return Engine\is_cancelled() ? SWOOLE_ERROR_CO_CANCELED : SWOOLE_ERROR_CO_TIMEDOUT;
    }

    private static function fail(int $error): false
    {
        Engine\LastError::set($error);
        return false;
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
        return Engine\cancel($cid) || self::fail(Engine\exists($cid) ? SWOOLE_ERROR_CO_CANNOT_CANCEL : SWOOLE_ERROR_CO_NOT_EXISTS);
    }

    public static function isCanceled(): bool
    {
        return Engine\is_cancelled();
    }

    public static function join(array $cids, float $timeout = -1): bool
    {
        if (in_array(Engine\id(), $cids, true)) {
            return self::fail(SWOOLE_ERROR_WRONG_OPERATION);
        }
        $cids = array_filter($cids, Engine\exists(...));
        if ($cids === []) {
            return self::fail(SWOOLE_ERROR_INVALID_PARAMS);
        }
        $until = $timeout > 0 ? microtime(true) + $timeout : INF;
        foreach ($cids as $cid) {
            $left = $until === INF ? -1.0 : max($until - microtime(true), 0.0);
            if (Engine\await($cid, $left) !== 1) {
                return self::fail(self::reason());
            }
        }
        return true;
    }

    public static function sleep(float $seconds): bool
    {
        if (Engine\id() === -1) {
            usleep((int) ($seconds * 1e6));
            return true;
        }
        return Engine\wait(max($seconds, 0.0)) === 0 || self::fail(self::reason());
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
        echo Engine\shown(self::getBackTrace($cid, $options | DEBUG_BACKTRACE_IGNORE_ARGS, $limit) ?: []);
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
            'c_stack_size' => Engine\stack_bytes(),
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
        return Engine\pause_preemption(false);
    }

    public static function disableScheduler(): bool
    {
        return Engine\pause_preemption(true);
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
