<?php

declare(strict_types=1);

namespace Outboard\Cache;

use Outboard\Records;

/**
 * Common operations of both caches on records: prefixed names, serialized values, lifetimes in seconds.
 *
 * @internal
 */
final class Entries
{
    /** Reserved by PSR-6 and PSR-16. */
    private const RESERVED = '{}()/\\@:';

    public function __construct(private readonly Records $records, private readonly string $prefix)
    {
    }

    /** @throws InvalidKey */
    public function check(mixed $key): string
    {
        if (is_int($key)) {
            // A numeric array key.
            $key = (string) $key;
        }
        if (!is_string($key) || $key === '' || strpbrk($key, self::RESERVED) !== false) {
            throw new InvalidKey('a key must be a non-empty string without any of ' . self::RESERVED);
        }
        $bytes = strlen($this->id($key));
        if ($bytes > Records::ID_MAX_BYTES) {
            throw new InvalidKey("the key has $bytes bytes with its prefix; the maximum is " . Records::ID_MAX_BYTES);
        }
        return $key;
    }

    /**
     * @param list<string> $keys
     * @return array<string, array{mixed}> the existing ones
     */
    public function read(array $keys): array
    {
        $found = $this->records->getMany(array_map($this->id(...), $keys));
        $values = [];
        foreach ($keys as $key) {
            $text = $found[$this->id($key)] ?? null;
            if ($text !== null) {
                $values[$key] = [unserialize($text)];
            }
        }
        return $values;
    }

    /** @param array<array-key, mixed> $values */
    public function write(array $values, ?float $ttl): void
    {
        if ($ttl !== null && $ttl <= 0) {
            $this->delete(array_map('strval', array_keys($values)));
            return;
        }
        $texts = [];
        foreach ($values as $key => $value) {
            $texts[$this->id((string) $key)] = serialize($value);
        }
        $this->records->putMany($texts, $ttl);
    }

    /** @param list<string> $keys */
    public function delete(array $keys): void
    {
        $this->records->delete(...array_map($this->id(...), $keys));
    }

    public function clear(): void
    {
        $ids = [];
        foreach ($this->records->idsOf($this->prefix) as $id) {
            $ids[] = $id;
        }
        foreach (array_chunk($ids, 1000) as $some) {
            $this->records->delete(...$some);
        }
    }

    public static function seconds(null|int|\DateInterval $ttl): ?float
    {
        if ($ttl instanceof \DateInterval) {
            $start = new \DateTimeImmutable('@0');
            return (float) $start->add($ttl)->getTimestamp();
        }
        return $ttl === null ? null : (float) $ttl;
    }

    private function id(string $key): string
    {
        return $this->prefix . $key;
    }
}
