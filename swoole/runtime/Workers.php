<?php

namespace Outboard\Engine\Swoole;

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

/** The settings for JSON; true stands for what it cannot hold, such as a function. */
function plain(array $settings): array
{
    return array_map(static fn (mixed $value): mixed => is_scalar($value) || is_array($value) ? $value : true, array_filter($settings, static fn (mixed $value): bool => $value !== null));
}

/** @internal options of set(), with sizes such as "2M" as numbers */
function sizes(array $settings): array
{
    foreach (['package_max_length', 'upload_max_filesize'] as $name) {
        if (is_string($settings[$name] ?? null) && preg_match('/^\d+[kmg]$/i', $settings[$name])) {
            $settings[$name] = ini_parse_quantity($settings[$name]);
        }
    }
    return $settings;
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
