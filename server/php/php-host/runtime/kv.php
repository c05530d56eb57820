<?php

namespace Outboard;

final class KV
{
    public function __construct(private readonly string $namespace = 'default')
    {
    }

    public function get(string $id): ?string
    {
        return $this->getMany([$id])[$id] ?? null;
    }

    public function getMany(array $ids): array
    {
        if ($ids === []) {
            return [];
        }
        return Engine\kv_parse_records($ids, Engine\kv($this->namespace, Engine\kv_read_request($ids)));
    }

    public function put(string $id, string $value, ?float $ttl = null): void
    {
        $this->write(Engine\kv_write(1, 0, $ttl, 0, $id, $value));
    }

    public function putMany(array $values, ?float $ttl = null): void
    {
        $writes = '';
        foreach ($values as $id => $value) {
            $writes .= Engine\kv_write(1, 0, $ttl, 0, (string) $id, $value);
        }
        $this->write($writes, count($values));
    }

    public function add(string $id, string $value, ?float $ttl = null): bool
    {
        return $this->compareAndSet($id, null, $value, $ttl);
    }

    public function delete(string ...$ids): void
    {
        $writes = '';
        foreach ($ids as $id) {
            $writes .= Engine\kv_write(2, 0, null, 0, $id);
        }
        $this->write($writes, count($ids));
    }

    public function increment(string $id, int $by = 1, ?float $ttl = null): int
    {
        return (int) substr($this->write(Engine\kv_write(3, 0, $ttl, $by, $id)), 5);
    }

    public function compareAndSet(string $id, ?string $expected, ?string $value, ?float $ttl = null): bool
    {
        if ($expected === null && $value === null) {
            return $this->get($id) === null;
        }
        $condition = $expected === null ? 1 : 3;
        $change = $value === null ? 2 : 1;
        return $this->write(Engine\kv_write($change, $condition, $ttl, 0, $id, $value ?? '', $expected ?? ''))[0] !== "\2";
    }

    public function scan(string $start = '', ?string $end = null): \Generator
    {
        $after = 0;
        do {
            $response = Engine\kv($this->namespace, pack('CVCVV', 3, 65536, $after, strlen($start), $end === null ? 0xffffffff : strlen($end)) . $start . $end);
            $count = unpack('V', $response)[1];
            $lengths = $count === 0 ? [] : array_values(unpack('V' . 2 * $count, $response, 4));
            $at = 4 + 8 * $count;
            for ($number = 0; $number < $count; $number++) {
                $start = substr($response, $at, $lengths[2 * $number]);
                $at += $lengths[2 * $number];
                $value = substr($response, $at, $lengths[2 * $number + 1]);
                $at += $lengths[2 * $number + 1];
                yield $start => $value;
            }
            $after = 1;
        } while ($count > 0);
    }

    public function lock(string $name, float $lease = 30.0, float $wait = 0.0): ?Lock
    {
        $owner = bin2hex(random_bytes(16));
        $until = microtime(true) + $wait;
        $pause = 0.002;
        while (!$this->add($name, $owner, $lease)) {
            if (microtime(true) >= $until) {
                return null;
            }
            \usleep((int) ($pause * 1e6));
            $pause = min(2 * $pause, 0.05);
        }
        return new Lock($this, $name, $owner);
    }

    private function write(string $writes, int $count = 1): string
    {
        return $count === 0 ? '' : Engine\kv($this->namespace, pack('CV', 2, $count) . $writes);
    }
}

final class Lock
{
    private bool $held = true;

    /** @internal */
    public function __construct(private readonly KV $kv, private readonly string $name, private readonly string $owner)
    {
    }

    public function renew(float $lease = 30.0): bool
    {
        return $this->held = $this->held && $this->kv->compareAndSet($this->name, $this->owner, $this->owner, $lease);
    }

    public function release(): bool
    {
        $held = $this->held;
        $this->held = false;
        return $held && $this->kv->compareAndSet($this->name, $this->owner, null);
    }
}

class KVException extends \RuntimeException
{
    /** @internal */
    public function __construct(string $message, public readonly string $reason = '')
    {
        parent::__construct($message);
    }
}

namespace Outboard\Engine;

/** By the status of the gateway's response. */
const KV_REASONS = [
    400 => 'bad_call', 403 => 'forbidden', 404 => 'no_namespace', 409 => 'not_a_number', 413 => 'too_large', 500 => 'failed',
    503 => 'overloaded', 504 => 'unreachable', 507 => 'full',
];

/** Encodes one write for the gateway's entities/batch.rs. */
function kv_write(int $change, int $condition, ?float $ttl, int $by, string $id, string $value = '', string $expected = ''): string
{
    $ttl = $ttl === null ? -1 : max(0, (int) round($ttl * 1000));
    return pack('CCPPVVV', $change, $condition, $ttl, $by, strlen($id), strlen($value), strlen($expected)) . $id . $value . $expected;
}

/** Sends an operation to the gateway, and waits for its response. */
function kv(string $namespace, string $operation): string
{
    $response = entities($namespace, $operation);
    if (count($response) === 2) {
        throw new \Outboard\KVException($response[1], 'failed');
    }
    if ($response[0] !== 200) {
        throw new \Outboard\KVException($response[4], KV_REASONS[$response[0]] ?? 'failed');
    }
    return $response[4];
}
