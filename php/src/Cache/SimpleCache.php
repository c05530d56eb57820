<?php

declare(strict_types=1);

namespace Outboard\Cache;

use Outboard\HostRecords;
use Outboard\Records;
use Psr\SimpleCache\CacheInterface;

/** PSR-16 on the entity store. Parameters have no types, to be compatible with every version of PSR-16. */
final class SimpleCache implements CacheInterface
{
    private readonly Entries $entries;

    public function __construct(?Records $records = null, string $prefix = 'cache:')
    {
        $this->entries = new Entries($records ?? new HostRecords(), $prefix);
    }

    public function get($key, $default = null): mixed
    {
        $key = $this->entries->check($key);
        return ($this->entries->read([$key])[$key] ?? [$default])[0];
    }

    public function set($key, $value, $ttl = null): bool
    {
        $this->entries->write([$this->entries->check($key) => $value], Entries::seconds($ttl));
        return true;
    }

    public function delete($key): bool
    {
        $this->entries->delete([$this->entries->check($key)]);
        return true;
    }

    public function clear(): bool
    {
        $this->entries->clear();
        return true;
    }

    /** @return array<string, mixed> */
    public function getMultiple($keys, $default = null): iterable
    {
        $keys = $this->checked($keys);
        $found = $this->entries->read($keys);
        $values = [];
        foreach ($keys as $key) {
            $values[$key] = ($found[$key] ?? [$default])[0];
        }
        return $values;
    }

    public function setMultiple($values, $ttl = null): bool
    {
        $checked = [];
        foreach ($values as $key => $value) {
            $checked[$this->entries->check($key)] = $value;
        }
        $this->entries->write($checked, Entries::seconds($ttl));
        return true;
    }

    public function deleteMultiple($keys): bool
    {
        $this->entries->delete($this->checked($keys));
        return true;
    }

    public function has($key): bool
    {
        return $this->entries->read([$this->entries->check($key)]) !== [];
    }

    /**
     * @param iterable<mixed> $keys
     * @return list<string>
     */
    private function checked(iterable $keys): array
    {
        $checked = [];
        foreach ($keys as $key) {
            $checked[] = $this->entries->check($key);
        }
        return $checked;
    }
}
