<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;

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
        if ($address !== $domain_name || filter_var($address, FILTER_VALIDATE_IP)) {
            return $address;
        }
        Engine\LastError::set(SWOOLE_ERROR_DNSLOOKUP_RESOLVE_FAILED);
        return false;
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
            if ($ended < 0 || !Coroutine::sleep(min($pause, $until - microtime(true)))) {
                Engine\LastError::set($ended < 0 ? pcntl_get_last_error() : SWOOLE_ERROR_CO_CANCELED);
                return false;
            }
            $pause = min($pause * 2, 0.02);
        } while (microtime(true) < $until);
        Engine\LastError::set(SOCKET_ETIMEDOUT);
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
        $came === false && Engine\LastError::set(Engine\is_cancelled() ? SWOOLE_ERROR_CO_CANCELED : SOCKET_ETIMEDOUT);
        return $came === false ? false : (count($signals) === 1 ? true : $came);
    }

    public static function waitEvent(mixed $socket, int $events = SWOOLE_EVENT_READ, float $timeout = -1): int|false
    {
        $ready = Engine\wait_descriptor($socket, $events, $timeout);
        $ready === 0 && Engine\LastError::set(SOCKET_ETIMEDOUT);
        return $ready === 0 ? false : $ready;
    }
}
