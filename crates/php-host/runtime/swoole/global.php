<?php

function swoole_set_process_name(string $process_name): bool
{
    return function_exists('cli_set_process_title') ? @cli_set_process_title($process_name) : Outboard\Engine\Swoole\set_title($process_name);
}

function swoole_timer_set(array $settings): bool
{
    return Swoole\Timer::set($settings);
}

function swoole_timer_tick(int $ms, callable $callback, mixed ...$params): int|false
{
    return Swoole\Timer::tick($ms, $callback, ...$params);
}

function swoole_timer_after(int $ms, callable $callback, mixed ...$params): int|false
{
    return Swoole\Timer::after($ms, $callback, ...$params);
}

function swoole_timer_exists(int $timer_id): bool
{
    return Swoole\Timer::exists($timer_id);
}

function swoole_timer_info(int $timer_id): ?array
{
    return Swoole\Timer::info($timer_id);
}

function swoole_timer_stats(): array
{
    return Swoole\Timer::stats();
}

function swoole_timer_list(): Swoole\Timer\Iterator
{
    return Swoole\Timer::list();
}

function swoole_timer_clear(int $timer_id): bool
{
    return Swoole\Timer::clear($timer_id);
}

function swoole_timer_clear_all(): bool
{
    return Swoole\Timer::clearAll();
}

function swoole_event_add(mixed $fd, ?callable $read_callback = null, ?callable $write_callback = null, int $events = SWOOLE_EVENT_READ): int|false
{
    return Swoole\Event::add($fd, $read_callback, $write_callback, $events);
}

function swoole_event_set(mixed $fd, ?callable $read_callback = null, ?callable $write_callback = null, int $events = 0): bool
{
    return Swoole\Event::set($fd, $read_callback, $write_callback, $events);
}

function swoole_event_del(mixed $fd): bool
{
    return Swoole\Event::del($fd);
}

function swoole_event_isset(mixed $fd, int $events = SWOOLE_EVENT_READ | SWOOLE_EVENT_WRITE): bool
{
    return Swoole\Event::isset($fd, $events);
}

function swoole_event_write(mixed $fd, string $data): bool
{
    return Swoole\Event::write($fd, $data);
}

function swoole_event_defer(callable $callback): bool
{
    return Swoole\Event::defer($callback);
}

function swoole_event_cycle(?callable $callback, bool $before = false): bool
{
    return Swoole\Event::cycle($callback, $before);
}

function swoole_event_wait(): void
{
    Swoole\Event::wait();
}

function swoole_event_dispatch(): bool
{
    return Swoole\Event::dispatch();
}

function swoole_event_exit(): void
{
    Swoole\Event::exit();
}

function swoole_last_error(): int
{
    return 0;
}

function swoole_errno(): int
{
    return 0;
}

function swoole_clear_error(): void
{
}

function swoole_error_log(int $level, string $msg): void
{
    fwrite(STDERR, "$msg\n");
}

function swoole_strerror(int $errno, int $error_type = SWOOLE_STRERROR_SYSTEM): string
{
    return posix_strerror($errno);
}

function swoole_get_local_ip(): array
{
    $addresses = [];
    foreach (net_get_interfaces() ?: [] as $name => $interface) {
        foreach ($interface['unicast'] ?? [] as $address) {
            if (($address['family'] ?? 0) === 2 && !str_starts_with($address['address'], '127.')) {
                $addresses[$name] = $address['address'];
            }
        }
    }
    return $addresses;
}

function swoole_get_local_mac(): array
{
    $addresses = [];
    foreach (glob('/sys/class/net/*/address') ?: [] as $file) {
        $addresses[basename(dirname($file))] = strtoupper(trim((string) file_get_contents($file)));
    }
    return $addresses;
}

function swoole_hashcode(string $data, int $type = 0): int|false
{
    return crc32($data);
}

function swoole_mime_type_exists(string $filename): bool
{
    return Outboard\Engine\Swoole\type_of($filename) !== 'application/octet-stream';
}

function swoole_mime_type_get(string $filename): string
{
    return Outboard\Engine\Swoole\type_of($filename);
}

function swoole_mime_type_list(): array
{
    return Outboard\Engine\Swoole\TYPES;
}

function swoole_substr_unserialize(string $str, int $offset, int $length = 0, array $options = []): mixed
{
    return unserialize($length > 0 ? substr($str, $offset, $length) : substr($str, $offset), $options);
}

function swoole_substr_json_decode(string $json, int $offset, int $length = 0, bool $associative = false, int $depth = 512, int $flags = 0): mixed
{
    return json_decode($length > 0 ? substr($json, $offset, $length) : substr($json, $offset), $associative, $depth, $flags);
}

function swoole_get_objects(): array|false
{
    return [];
}

function swoole_get_vm_status(): array
{
    return ['object_num' => 0, 'resource_num' => count(get_resources())];
}

function swoole_async_set(array $settings): bool
{
    return true;
}

function swoole_async_dns_lookup_coro(mixed $domain_name, float $timeout = 60, int $type = AF_INET): string|false
{
    return Swoole\Coroutine\System::dnsLookup($domain_name, $timeout, $type);
}

/** Of the versions before 4.3: the callback gets the content. */
function swoole_async_readfile(string $filename, callable $callback): bool
{
    if (!is_file($filename)) {
        return false;
    }
    go(static fn (): mixed => $callback($filename, file_get_contents($filename)));
    return true;
}

function swoole_async_writefile(string $filename, string $content, ?callable $callback = null, int $flags = 0): bool
{
    go(static function () use ($filename, $content, $callback, $flags): void {
        $written = file_put_contents($filename, $content, $flags);
        $callback === null || $callback($filename, $written);
    });
    return true;
}

function swoole_async_dns_lookup(string $host, callable $callback): bool
{
    go(static fn (): mixed => $callback($host, Swoole\Coroutine\System::gethostbyname($host) ?: ''));
    return true;
}
