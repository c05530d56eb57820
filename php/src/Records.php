<?php

declare(strict_types=1);

namespace Outboard;

/** Records under names. HostRecords keeps them in the gateway; tests use Testing\FakeRecords. */
interface Records
{
    /** Longest name of a record, bytes. No name is empty. */
    public const ID_MAX_BYTES = 4096;

    /**
     * @param list<string> $ids
     * @return array<string, string> those that are there
     */
    public function getMany(array $ids): array;

    /** @param array<string, string> $values */
    public function putMany(array $values, ?float $ttl = null): void;

    public function delete(string ...$ids): void;

    /** @return iterable<string> names that begin so, in order */
    public function idsOf(string $prefix): iterable;

    /** @return ?\Closure(): void ends the lock; null when another one has it */
    public function lock(string $name, float $lease, float $wait): ?\Closure;
}
