<?php

declare(strict_types=1);

namespace Outboard;

/** Records in the gateway's entity store. */
final class HostRecords implements Records
{
    private readonly KV $kv;

    public function __construct(string $namespace = 'default')
    {
        $this->kv = new KV($namespace);
    }

    public function getMany(array $ids): array
    {
        return self::named($this->kv->getMany($ids));
    }

    public function putMany(array $values, ?float $ttl = null): void
    {
        $this->kv->putMany($values, $ttl);
    }

    public function delete(string ...$ids): void
    {
        $this->kv->delete(...$ids);
    }

    public function idsOf(string $prefix): iterable
    {
        foreach ($this->kv->scan($prefix) as $id => $value) {
            if (!str_starts_with($id, $prefix)) {
                return;
            }
            yield $id;
        }
    }

    public function lock(string $name, float $lease, float $wait): ?\Closure
    {
        $lock = $this->kv->lock($name, $lease, $wait);
        return $lock === null ? null : static function () use ($lock): void {
            $lock->release();
        };
    }

    /**
     * @param array<array-key, string> $values
     * @return array<string, string>
     */
    private static function named(array $values): array
    {
        /** @var array<string, string> PHP converts numeric names to int, in lookups as well */
        return $values;
    }
}
