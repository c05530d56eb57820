<?php

namespace Swoole;

/** A list or map with methods; a value that is a text or an array comes back as such an object. */
class ArrayObject implements \ArrayAccess, \Serializable, \Countable, \Iterator
{
    protected array $array;

    public function __construct(array $array = [])
    {
        $this->array = $array;
    }

    public function __toArray(): array
    {
        return $this->array;
    }

    public function __serialize(): array
    {
        return $this->array;
    }

    public function __unserialize(array $data): void
    {
        $this->array = $data;
    }

    public static function from(array $array = []): static
    {
        return new static($array);
    }

    public function toArray(): array
    {
        return $this->array;
    }

    public function isEmpty(): bool
    {
        return $this->array === [];
    }

    public function count(): int
    {
        return count($this->array);
    }

    public function current(): mixed
    {
        return current($this->array);
    }

    public function key(): mixed
    {
        return key($this->array);
    }

    public function valid(): bool
    {
        return key($this->array) !== null;
    }

    #[\ReturnTypeWillChange]
    public function rewind(): mixed
    {
        return reset($this->array);
    }

    #[\ReturnTypeWillChange]
    public function next(): mixed
    {
        return next($this->array);
    }

    public function get(mixed $key): mixed
    {
        if (!$this->exists($key)) {
            throw new Exception\ArrayKeyNotExists($key);
        }
        return self::detectType($this->array[$key]);
    }

    public function getOr(mixed $key, mixed $default = null): mixed
    {
        return $this->exists($key) ? self::detectType($this->array[$key]) : $default;
    }

    public function first(): mixed
    {
        $key = array_key_first($this->array);
        return $key === null ? null : self::detectType($this->array[$key]);
    }

    public function last(): mixed
    {
        $key = array_key_last($this->array);
        return $key === null ? null : self::detectType($this->array[$key]);
    }

    public function firstKey(): mixed
    {
        return array_key_first($this->array);
    }

    public function lastKey(): mixed
    {
        return array_key_last($this->array);
    }

    public function set(mixed $key, mixed $value): self
    {
        $this->array[$key] = $value;
        return $this;
    }

    public function delete(mixed $key): self
    {
        unset($this->array[$key]);
        return $this;
    }

    public function remove(mixed $value, bool $strict = true, bool $loop = false): self
    {
        foreach (array_keys($this->array, $value, $strict) as $key) {
            unset($this->array[$key]);
            if (!$loop) {
                break;
            }
        }
        return $this;
    }

    public function clear(): self
    {
        $this->array = [];
        return $this;
    }

    public function offsetGet(mixed $key): mixed
    {
        return $this->array[$key] ?? null;
    }

    public function offsetSet(mixed $key, mixed $value): void
    {
        if ($key === null) {
            $this->array[] = $value;
        } else {
            $this->array[$key] = $value;
        }
    }

    public function offsetUnset(mixed $key): void
    {
        unset($this->array[$key]);
    }

    public function offsetExists(mixed $key): bool
    {
        return isset($this->array[$key]);
    }

    public function exists(mixed $key): bool
    {
        return array_key_exists($key, $this->array);
    }

    public function contains(mixed $value, bool $strict = true): bool
    {
        return in_array($value, $this->array, $strict);
    }

    public function indexOf(mixed $value, bool $strict = true): mixed
    {
        return $this->search($value, $strict);
    }

    public function lastIndexOf(mixed $value, bool $strict = true): mixed
    {
        return array_search($value, array_reverse($this->array, true), $strict);
    }

    public function search(mixed $needle, bool $strict = true): mixed
    {
        return array_search($needle, $this->array, $strict);
    }

    public function join(string $glue = ''): StringObject
    {
        return new StringObject(implode($glue, $this->array));
    }

    public function serialize(): string
    {
        return serialize($this->array);
    }

    public function unserialize($string): self
    {
        $this->array = (array) unserialize((string) $string);
        return $this;
    }

    public function sum(): int|float
    {
        return array_sum($this->array);
    }

    public function product(): int|float
    {
        return array_product($this->array);
    }

    public function push(mixed $value): int
    {
        return array_push($this->array, $value);
    }

    public function pushBack(mixed $value): int
    {
        return array_push($this->array, $value);
    }

    public function pushFront(mixed $value): int
    {
        return array_unshift($this->array, $value);
    }

    public function append(mixed ...$values): self
    {
        array_push($this->array, ...$values);
        return $this;
    }

    public function insert(int $offset, mixed $value): self
    {
        array_splice($this->array, $offset, 0, is_array($value) || is_object($value) ? [$value] : $value);
        return $this;
    }

    public function pop(): mixed
    {
        return self::detectType(array_pop($this->array));
    }

    public function popBack(): mixed
    {
        return self::detectType(array_pop($this->array));
    }

    public function popFront(): mixed
    {
        return self::detectType(array_shift($this->array));
    }

    public function slice(int $offset, ?int $length = null, bool $preserve_keys = false): static
    {
        return new static(array_slice($this->array, $offset, $length, $preserve_keys));
    }

    public function randomGet(): mixed
    {
        return self::detectType($this->array[array_rand($this->array)]);
    }

    public function each(callable $fn): self
    {
        array_walk($this->array, $fn);
        return $this;
    }

    public function map(callable $fn, array ...$args): static
    {
        return new static(array_map($fn, $this->array, ...$args));
    }

    public function reduce(callable $fn, mixed $initial = null): mixed
    {
        return array_reduce($this->array, $fn, $initial);
    }

    public function keys(mixed ...$args): static
    {
        return new static(array_keys($this->array, ...$args));
    }

    public function values(): static
    {
        return new static(array_values($this->array));
    }

    public function column(mixed $column_key, mixed $index = null): static
    {
        return new static(array_column($this->array, $column_key, $index));
    }

    public function unique(int $sort_flags = SORT_STRING): static
    {
        return new static(array_unique($this->array, $sort_flags));
    }

    public function reverse(bool $preserve_keys = false): static
    {
        return new static(array_reverse($this->array, $preserve_keys));
    }

    public function chunk(int $size, bool $preserve_keys = false): static
    {
        return new static(array_chunk($this->array, $size, $preserve_keys));
    }

    public function flip(): static
    {
        return new static(array_flip($this->array));
    }

    public function filter(callable $fn, int $flag = 0): static
    {
        return new static(array_filter($this->array, $fn, $flag));
    }

    public function shuffle(): self
    {
        return $this->order('shuffle');
    }

    public function sort(int $sort_flags = SORT_REGULAR): self
    {
        return $this->order('sort', $sort_flags);
    }

    public function rsort(int $sort_flags = SORT_REGULAR): self
    {
        return $this->order('rsort', $sort_flags);
    }

    public function asort(int $sort_flags = SORT_REGULAR): self
    {
        return $this->order('asort', $sort_flags);
    }

    public function arsort(int $sort_flags = SORT_REGULAR): self
    {
        return $this->order('arsort', $sort_flags);
    }

    public function ksort(int $sort_flags = SORT_REGULAR): self
    {
        return $this->order('ksort', $sort_flags);
    }

    public function krsort(int $sort_flags = SORT_REGULAR): self
    {
        return $this->order('krsort', $sort_flags);
    }

    public function natsort(): self
    {
        return $this->order('natsort');
    }

    public function natcasesort(): self
    {
        return $this->order('natcasesort');
    }

    public function usort(callable $value_compare_func): self
    {
        return $this->order('usort', $value_compare_func);
    }

    public function uasort(callable $value_compare_func): self
    {
        return $this->order('uasort', $value_compare_func);
    }

    public function uksort(callable $value_compare_func): self
    {
        return $this->order('uksort', $value_compare_func);
    }

    private function order(callable $function, mixed ...$arguments): self
    {
        if (!$function($this->array, ...$arguments)) {
            throw new \RuntimeException("$function() returned false");
        }
        return $this;
    }

    protected static function detectType(mixed $value): mixed
    {
        return match (true) {
            is_string($value) => new StringObject($value),
            is_array($value) => new static($value),
            default => $value,
        };
    }
}

namespace Swoole\Exception;

class ArrayKeyNotExists extends \RuntimeException
{
    public function __construct(string|int $key = '', int $code = 0, ?\Throwable $previous = null)
    {
        parent::__construct("the array key [$key] does not exist", $code, $previous);
    }
}
