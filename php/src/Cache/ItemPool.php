<?php

declare(strict_types=1);

namespace Outboard\Cache;

use Outboard\HostRecords;
use Outboard\Records;
use Psr\Cache\CacheItemInterface;
use Psr\Cache\CacheItemPoolInterface;

/** PSR-6 on the entity store. commit() writes deferred items, at the latest at the end. */
final class ItemPool implements CacheItemPoolInterface
{
    private readonly Entries $entries;

    /** @var array<string, Item> */
    private array $deferred = [];

    public function __construct(?Records $records = null, string $prefix = 'cache:')
    {
        $this->entries = new Entries($records ?? new HostRecords(), $prefix);
    }

    public function __destruct()
    {
        $this->commit();
    }

    public function getItem($key): CacheItemInterface
    {
        return $this->getItems([$key])[$this->entries->check($key)];
    }

    /** @return array<string, CacheItemInterface> */
    public function getItems(array $keys = []): iterable
    {
        $keys = array_map($this->entries->check(...), array_values($keys));
        $this->commit();
        $found = $this->entries->read($keys);
        $items = [];
        foreach ($keys as $key) {
            $items[$key] = new Item($key, ($found[$key] ?? [null])[0], isset($found[$key]));
        }
        return $items;
    }

    public function hasItem($key): bool
    {
        return $this->getItem($key)->isHit();
    }

    public function clear(): bool
    {
        $this->deferred = [];
        $this->entries->clear();
        return true;
    }

    public function deleteItem($key): bool
    {
        return $this->deleteItems([$key]);
    }

    public function deleteItems(array $keys): bool
    {
        $keys = array_map($this->entries->check(...), array_values($keys));
        $this->deferred = array_diff_key($this->deferred, array_flip($keys));
        $this->entries->delete($keys);
        return true;
    }

    public function save(CacheItemInterface $item): bool
    {
        return $this->saveDeferred($item) && $this->commit();
    }

    public function saveDeferred(CacheItemInterface $item): bool
    {
        if (!$item instanceof Item) {
            return false;
        }
        $this->deferred[$item->getKey()] = $item;
        return true;
    }

    public function commit(): bool
    {
        foreach ($this->deferred as $key => $item) {
            $this->entries->write([$key => $item->get()], $item->ttl());
        }
        $this->deferred = [];
        return true;
    }
}
