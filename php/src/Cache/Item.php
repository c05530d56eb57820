<?php

declare(strict_types=1);

namespace Outboard\Cache;

use Psr\Cache\CacheItemInterface;

/** An item of ItemPool. */
final class Item implements CacheItemInterface
{
    /** Seconds since 1970; null: unlimited. */
    private ?float $expires = null;

    /** @internal */
    public function __construct(private readonly string $key, private mixed $value, private readonly bool $isHit)
    {
    }

    public function getKey(): string
    {
        return $this->key;
    }

    public function get(): mixed
    {
        return $this->value;
    }

    public function isHit(): bool
    {
        return $this->isHit;
    }

    public function set($value): static
    {
        $this->value = $value;
        return $this;
    }

    public function expiresAt($expiration): static
    {
        $this->expires = $expiration === null ? null : $expiration->getTimestamp() + (int) $expiration->format('u') / 1e6;
        return $this;
    }

    public function expiresAfter($time): static
    {
        $seconds = Entries::seconds($time);
        $this->expires = $seconds === null ? null : microtime(true) + $seconds;
        return $this;
    }

    /** @internal */
    public function ttl(): ?float
    {
        return $this->expires === null ? null : $this->expires - microtime(true);
    }
}
