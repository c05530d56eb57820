<?php

declare(strict_types=1);

namespace Outboard\Testing;

use Outboard\Records;

/** Records in an array, with a clock that the test sets. */
final class FakeRecords implements Records
{
    public float $now = 0.0;

    /** @var array<string, array{string, ?float}> */
    private array $records = [];

    /** @var array<string, true> */
    private array $locks = [];

    public function getMany(array $ids): array
    {
        $found = [];
        foreach ($ids as $id) {
            [$value, $until] = $this->records[$id] ?? [null, null];
            if ($value !== null && ($until === null || $this->now < $until)) {
                $found[$id] = $value;
            }
        }
        return $found;
    }

    public function putMany(array $values, ?float $ttl = null): void
    {
        foreach ($values as $id => $value) {
            $this->records[$id] = [$value, $ttl === null ? null : $this->now + $ttl];
        }
    }

    public function delete(string ...$ids): void
    {
        foreach ($ids as $id) {
            unset($this->records[$id]);
        }
    }

    public function idsOf(string $prefix): iterable
    {
        $ids = array_map('strval', array_keys($this->records));
        sort($ids, SORT_STRING);
        return array_values(array_filter($ids, static fn (string $id): bool => str_starts_with($id, $prefix)));
    }

    public function lock(string $name, float $lease, float $wait): ?\Closure
    {
        if (isset($this->locks[$name])) {
            return null;
        }
        $this->locks[$name] = true;
        return function () use ($name): void {
            unset($this->locks[$name]);
        };
    }
}
