<?php

namespace Swoole;

/** A text with methods, by bytes. */
class StringObject implements \Stringable
{
    public function __construct(protected string $string = '')
    {
    }

    public function __toString(): string
    {
        return $this->string;
    }

    public static function from(string $string = ''): static
    {
        return new static($string);
    }

    public function toString(): string
    {
        return $this->string;
    }

    public function length(): int
    {
        return strlen($this->string);
    }

    public function indexOf(string $needle, int $offset = 0): int|false
    {
        return strpos($this->string, $needle, $offset);
    }

    public function lastIndexOf(string $needle, int $offset = 0): int|false
    {
        return strrpos($this->string, $needle, $offset);
    }

    public function pos(string $needle, int $offset = 0): int|false
    {
        return strpos($this->string, $needle, $offset);
    }

    public function rpos(string $needle, int $offset = 0): int|false
    {
        return strrpos($this->string, $needle, $offset);
    }

    public function ipos(string $needle): int|false
    {
        return stripos($this->string, $needle);
    }

    public function reverse(): static
    {
        return new static(strrev($this->string));
    }

    public function lower(): static
    {
        return new static(strtolower($this->string));
    }

    public function upper(): static
    {
        return new static(strtoupper($this->string));
    }

    public function trim(string $characters = ''): static
    {
        return new static($characters === '' ? trim($this->string) : trim($this->string, $characters));
    }

    public function ltrim(): static
    {
        return new static(ltrim($this->string));
    }

    public function rtrim(): static
    {
        return new static(rtrim($this->string));
    }

    public function substr(int $offset, ?int $length = null): static
    {
        return new static(substr($this->string, $offset, $length));
    }

    public function repeat(int $times): static
    {
        return new static(str_repeat($this->string, $times));
    }

    public function append(mixed $str): static
    {
        return new static($this->string . $str);
    }

    public function replace(string $search, string $replace, mixed &$count = null): static
    {
        return new static(str_replace($search, $replace, $this->string, $count));
    }

    public function startsWith(string $needle): bool
    {
        return str_starts_with($this->string, $needle);
    }

    public function endsWith(string $needle): bool
    {
        return str_ends_with($this->string, $needle);
    }

    public function equals(mixed $str, bool $strict = false): bool
    {
        $str = $str instanceof self ? $str->string : $str;
        return $strict ? $this->string === $str : $this->string == $str;
    }

    public function contains(string $subString): bool
    {
        return str_contains($this->string, $subString);
    }

    public function split(string $delimiter, int $limit = PHP_INT_MAX): ArrayObject
    {
        return new ArrayObject(explode($delimiter, $this->string, $limit));
    }

    public function char(int $index): string
    {
        return $this->string[$index] ?? '';
    }

    public function chunkSplit(int $length = 76, string $separator = "\r\n"): static
    {
        return new static(chunk_split($this->string, $length, $separator));
    }

    public function chunk(int $length = 1): ArrayObject
    {
        return new ArrayObject(str_split($this->string, $length));
    }
}

/** A text with methods, by characters. */
class MultibyteStringObject extends StringObject
{
    public function length(): int
    {
        return mb_strlen($this->string);
    }

    public function indexOf(string $needle, int $offset = 0, ?string $encoding = null): int|false
    {
        return mb_strpos($this->string, $needle, $offset, $encoding);
    }

    public function lastIndexOf(string $needle, int $offset = 0, ?string $encoding = null): int|false
    {
        return mb_strrpos($this->string, $needle, $offset, $encoding);
    }

    public function pos(string $needle, int $offset = 0, ?string $encoding = null): int|false
    {
        return mb_strpos($this->string, $needle, $offset, $encoding);
    }

    public function rpos(string $needle, int $offset = 0, ?string $encoding = null): int|false
    {
        return mb_strrpos($this->string, $needle, $offset, $encoding);
    }

    public function ipos(string $needle, int $offset = 0, ?string $encoding = null): int|false
    {
        return mb_stripos($this->string, $needle, $offset, $encoding);
    }

    public function substr(int $offset, ?int $length = null, ?string $encoding = null): static
    {
        return new static(mb_substr($this->string, $offset, $length, $encoding));
    }

    public function chunk(int $length = 1): ArrayObject
    {
        return new ArrayObject(mb_str_split($this->string, $length));
    }
}
