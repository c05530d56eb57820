<?php

declare(strict_types=1);

namespace Outboard;

/** Records under names: HostRecords in the gateway, Testing\FakeRecords in tests. */
interface Records
{
    /** Maximum length of a name, which is not empty. */
    public const ID_MAX_BYTES = 4096;

    /**
     * @param list<string> $ids
     * @return array<string, string> the existing ones
     */
    public function getMany(array $ids): array;

    /** @param array<string, string> $values */
    public function putMany(array $values, ?float $ttl = null): void;

    public function delete(string ...$ids): void;

    /** @return iterable<string> names with this prefix, in order */
    public function idsOf(string $prefix): iterable;

    /** @return ?\Closure(): void releases the lock; null if another owner holds it */
    public function lock(string $name, float $lease, float $wait): ?\Closure;
}
