<?php

function swoole_set_process_name(string $process_name): bool
{
    return cli_set_process_title($process_name);
}

/** Those of the command line (php_cli_process_title.c), whose functions a program expects with its name. */
function cli_set_process_title(string $title): bool
{
    // A program that is only read has no process of its own to name.
    Outboard\Engine\Swoole\set_title(Outboard\Engine\Swoole\Settings::$title = $title);
    return true;
}

function cli_get_process_title(): ?string
{
    return Outboard\Engine\Swoole\Settings::$title;
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

function swoole_event_rshutdown(): void
{
    Swoole\Event::rshutdown();
}

function swoole_last_error(): int
{
    return Outboard\Engine\Swoole\LastError::$code;
}

function swoole_errno(): int
{
    return posix_get_last_error();
}

function swoole_clear_error(): void
{
    Outboard\Engine\Swoole\LastError::set(0);
}

function swoole_ignore_error(int $error): void
{
    Outboard\Engine\Swoole\LastError::$ignored[$error] = true;
}

function swoole_error_log(int $level, string $msg): void
{
    if ($level >= (Swoole\Coroutine::getOptions()['log_level'] ?? SWOOLE_LOG_INFO)) {
        $name = ['DEBUG', 'TRACE', 'INFO', 'NOTICE', 'WARNING', 'ERROR'][$level] ?? 'INFO';
        fwrite(STDERR, date('[Y-m-d H:i:s') . ' ' . getmypid() . "]\t$name\t$msg\n");
    }
}

function swoole_error_log_ex(int $level, int $error, string $msg): void
{
    if (!isset(Outboard\Engine\Swoole\LastError::$ignored[$error])) {
        swoole_error_log($level, "$msg (ERRNO $error)");
    }
}

function swoole_strerror(int $errno, int $error_type = SWOOLE_STRERROR_SYSTEM): string
{
    if ($error_type === SWOOLE_STRERROR_SYSTEM && $errno < 500) {
        return posix_strerror($errno);
    }
    if ($error_type === SWOOLE_STRERROR_DNS || $error_type === SWOOLE_STRERROR_GAI) {
        return 'Name or service not known';
    }
    return Outboard\Engine\Swoole\error_text($errno);
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

/** 0: the times-33 hash of D. J. Bernstein, 1: CRC-32. */
function swoole_hashcode(string $data, int $type = 0): int|false
{
    if ($type === 1) {
        return crc32($data);
    }
    $hash = 5381;
    for ($i = 0, $length = strlen($data); $i < $length; $i++) {
        // Unsigned 64 bits that wrap: the product is put together from its halves.
        $low = ($hash & 0xffffffff) * 33 + ord($data[$i]);
        $high = (($hash >> 32) & 0xffffffff) * 33 + ($low >> 32);
        $hash = (($high & 0xffffffff) << 32) | ($low & 0xffffffff);
    }
    return $hash;
}

function swoole_mime_type_add(string $suffix, string $mime_type): bool
{
    if (isset(Outboard\Engine\Swoole\Settings::$types[$suffix])) {
        return false;
    }
    swoole_mime_type_set($suffix, $mime_type);
    return true;
}

function swoole_mime_type_set(string $suffix, string $mime_type): void
{
    Outboard\Engine\Swoole\Settings::$types[strtolower($suffix)] = $mime_type;
}

function swoole_mime_type_delete(string $suffix): bool
{
    $was = isset(Outboard\Engine\Swoole\Settings::$types[$suffix]);
    unset(Outboard\Engine\Swoole\Settings::$types[$suffix]);
    return $was;
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
    return Outboard\Engine\Swoole\Settings::$types;
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

/** Its options are those of Coroutine::set(). */
function swoole_async_set(array $settings): bool
{
    Swoole\Coroutine::set($settings);
    return true;
}

function swoole_clear_dns_cache(): void
{
}

function swoole_coroutine_socketpair(int $domain, int $type, int $protocol): array|false
{
    return socket_create_pair($domain, $type, $protocol, $pair)
        ? [Swoole\Coroutine\Socket::around($pair[0], $domain, $type, $protocol), Swoole\Coroutine\Socket::around($pair[1], $domain, $type, $protocol)]
        : false;
}

/** As stream_select(), with clients of the class Swoole\Client. */
function swoole_client_select(?array &$read, ?array &$write, ?array &$except, ?float $timeout = 0.5): int|false
{
    $sockets = [];
    foreach ([$read ?? [], $write ?? [], $except ?? []] as $kind => $clients) {
        foreach ($clients as $key => $client) {
            $sockets[$kind][$key] = $client instanceof Swoole\Client ? $client->getSocket() : socket_import_stream($client);
        }
    }
    $in = $sockets[0] ?? null;
    $out = $sockets[1] ?? null;
    $exceptional = $sockets[2] ?? null;
    $ready = socket_select($in, $out, $exceptional, (int) $timeout, (int) (fmod($timeout, 1) * 1e6));
    $read = array_intersect_key($read ?? [], $in ?? []);
    $write = array_intersect_key($write ?? [], $out ?? []);
    $except = array_intersect_key($except ?? [], $exceptional ?? []);
    return $ready;
}

/** The name of the versions before 4.6. */
function swoole_select(?array &$read, ?array &$write, ?array &$except, ?float $timeout = 0.5): int|false
{
    return swoole_client_select($read, $write, $except, $timeout);
}

function swoole_library_set_options(array $options): void
{
    Outboard\Engine\Swoole\Settings::$library = $options;
}

function swoole_library_get_options(): array
{
    return Outboard\Engine\Swoole\Settings::$library;
}

function swoole_library_set_option(string $key, mixed $value): void
{
    Outboard\Engine\Swoole\Settings::$library[$key] = $value;
}

function swoole_library_get_option(string $key): mixed
{
    return Outboard\Engine\Swoole\Settings::$library[$key] ?? null;
}

function swoole_string(string $string = ''): Swoole\StringObject
{
    return new Swoole\StringObject($string);
}

function swoole_mbstring(string $string = ''): Swoole\MultibyteStringObject
{
    return new Swoole\MultibyteStringObject($string);
}

function swoole_array(array $array = []): Swoole\ArrayObject
{
    return new Swoole\ArrayObject($array);
}

function swoole_array_list(mixed ...$arrray): Swoole\ArrayObject
{
    return new Swoole\ArrayObject($arrray);
}

function swoole_array_default_value(array $array, mixed $key, mixed $default_value = null): mixed
{
    return array_key_exists($key, $array) ? $array[$key] : $default_value;
}

/** A table of columns such as "id:int, name:string:32, share:float". */
function swoole_table(int $size, string $fields): Swoole\Table
{
    $table = new Swoole\Table($size);
    foreach (explode(',', $fields) as $field) {
        [$name, $type, $length] = array_map(trim(...), explode(':', $field)) + [1 => 'int', 2 => 0];
        $type = match (strtolower($type)) {
            'i', 'int' => Swoole\Table::TYPE_INT,
            'f', 'float' => Swoole\Table::TYPE_FLOAT,
            's', 'string' => Swoole\Table::TYPE_STRING,
            default => throw new RuntimeException("unknown field type $type"),
        };
        $table->column($name, $type, (int) $length);
    }
    if (!$table->create()) {
        throw new RuntimeException('the table was not created');
    }
    return $table;
}

function swoole_is_in_container(): bool
{
    return is_file('/.dockerenv') || is_file('/run/.containerenv');
}

/** The processors that the control group allows. */
function swoole_container_cpu_num(): int
{
    [$quota, $period] = explode(' ', trim((string) @file_get_contents('/sys/fs/cgroup/cpu.max'))) + ['max', 1];
    return is_numeric($quota) ? max(1, (int) ceil($quota / max(1, (int) $period))) : swoole_cpu_num();
}

function _string(string $string = ''): Swoole\StringObject
{
    return new Swoole\StringObject($string);
}

function _mbstring(string $string = ''): Swoole\MultibyteStringObject
{
    return new Swoole\MultibyteStringObject($string);
}

function _array(array $array = []): Swoole\ArrayObject
{
    return new Swoole\ArrayObject($array);
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
    swoole_coroutine_create(static fn (): mixed => $callback($filename, file_get_contents($filename)));
    return true;
}

function swoole_async_writefile(string $filename, string $content, ?callable $callback = null, int $flags = 0): bool
{
    swoole_coroutine_create(static function () use ($filename, $content, $callback, $flags): void {
        $written = file_put_contents($filename, $content, $flags);
        $callback === null || $callback($filename, $written);
    });
    return true;
}

function swoole_async_dns_lookup(string $host, callable $callback): bool
{
    swoole_coroutine_create(static fn (): mixed => $callback($host, Swoole\Coroutine\System::gethostbyname($host) ?: ''));
    return true;
}
