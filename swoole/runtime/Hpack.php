<?php

namespace Outboard\Engine\Swoole;

/** @internal the header compression of HTTP/2 (RFC 7541), for one direction of a connection */
final class Hpack
{
    private const STATIC_TABLE = [
        [':authority', ''], [':method', 'GET'], [':method', 'POST'], [':path', '/'], [':path', '/index.html'], [':scheme', 'http'], [':scheme', 'https'],
        [':status', '200'], [':status', '204'], [':status', '206'], [':status', '304'], [':status', '400'], [':status', '404'], [':status', '500'],
        ['accept-charset', ''], ['accept-encoding', 'gzip, deflate'], ['accept-language', ''], ['accept-ranges', ''], ['accept', ''],
        ['access-control-allow-origin', ''], ['age', ''], ['allow', ''], ['authorization', ''], ['cache-control', ''], ['content-disposition', ''],
        ['content-encoding', ''], ['content-language', ''], ['content-length', ''], ['content-location', ''], ['content-range', ''], ['content-type', ''],
        ['cookie', ''], ['date', ''], ['etag', ''], ['expect', ''], ['expires', ''], ['from', ''], ['host', ''], ['if-match', ''], ['if-modified-since', ''],
        ['if-none-match', ''], ['if-range', ''], ['if-unmodified-since', ''], ['last-modified', ''], ['link', ''], ['location', ''], ['max-forwards', ''],
        ['proxy-authenticate', ''], ['proxy-authorization', ''], ['range', ''], ['referer', ''], ['refresh', ''], ['retry-after', ''], ['server', ''],
        ['set-cookie', ''], ['strict-transport-security', ''], ['transfer-encoding', ''], ['user-agent', ''], ['vary', ''], ['via', ''], ['www-authenticate', ''],
    ];

    /** Of each byte, the length of its Huffman code in bits, A for 5; the codes follow from that (appendix B is canonical). */
    private const CODE_LENGTHS = 'ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHFIBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCCKGJIXPRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRSVVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWV';

    /** @var list<array{string, string}> the newest first */
    private array $table = [];

    private int $size = 0;

    private int $limit = 4096;

    /** @var array<int, array<int, string>> bytes by length and code */
    private static array $codes = [];

    /** @param list<array{string, string}> $headers */
    public static function encode(array $headers): string
    {
        $text = '';
        foreach ($headers as [$name, $value]) {
            $index = array_search([$name, $value], self::STATIC_TABLE, true);
            $text .= $index !== false ? self::integer($index + 1, 7, 0x80) : "\0" . self::integer(strlen($name), 7, 0) . $name . self::integer(strlen($value), 7, 0) . $value;
        }
        return $text;
    }

    /**
     * The headers of a block; null: it is invalid.
     *
     * @return list<array{string, string}>|null
     */
    public function decode(string $block): ?array
    {
        $headers = [];
        $at = 0;
        $total = 0;
        while ($at < strlen($block)) {
            $first = ord($block[$at]);
            if ($first & 0x80) {
                $entry = $this->entry(self::readInteger($block, $at, 7));
                if ($entry === null) {
                    return null;
                }
            } elseif (($first & 0xe0) === 0x20) {
                $limit = self::readInteger($block, $at, 5);
                if ($limit === null || $limit > 4096) {
                    return null;
                }
                $this->limit = $limit;
                $this->evict();
                continue;
            } else {
                $isStored = ($first & 0x40) !== 0;
                $index = self::readInteger($block, $at, $isStored ? 6 : 4);
                $name = $index === 0 ? self::readString($block, $at) : ($this->entry($index)[0] ?? null);
                $value = $name === null ? null : self::readString($block, $at);
                if ($value === null) {
                    return null;
                }
                $entry = [$name, $value];
                if ($isStored) {
                    array_unshift($this->table, $entry);
                    $this->size += self::sizeOf($entry);
                    $this->evict();
                }
            }
            $headers[] = $entry;
            $total += self::sizeOf($entry);
            if ($total > 1 << 18) {
                return null;
            }
        }
        return $headers;
    }

    private function entry(?int $index): ?array
    {
        if ($index === null || $index === 0) {
            return null;
        }
        return self::STATIC_TABLE[$index - 1] ?? $this->table[$index - 1 - count(self::STATIC_TABLE)] ?? null;
    }

    private function evict(): void
    {
        while ($this->size > $this->limit) {
            $this->size -= self::sizeOf(array_pop($this->table));
        }
    }

    private static function sizeOf(array $entry): int
    {
        return strlen($entry[0]) + strlen($entry[1]) + 32;
    }

    private static function integer(int $value, int $bits, int $flags): string
    {
        $most = (1 << $bits) - 1;
        if ($value < $most) {
            return chr($flags | $value);
        }
        $text = chr($flags | $most);
        for ($value -= $most; $value >= 128; $value >>= 7) {
            $text .= chr($value & 0x7f | 0x80);
        }
        return $text . chr($value);
    }

    private static function readInteger(string $block, int &$at, int $bits): ?int
    {
        $most = (1 << $bits) - 1;
        $value = ord($block[$at++]) & $most;
        if ($value < $most) {
            return $value;
        }
        for ($shift = 0; $shift <= 21; $shift += 7) {
            if ($at >= strlen($block)) {
                return null;
            }
            $byte = ord($block[$at++]);
            $value += ($byte & 0x7f) << $shift;
            if (!($byte & 0x80)) {
                return $value;
            }
        }
        return null;
    }

    private static function readString(string $block, int &$at): ?string
    {
        if ($at >= strlen($block)) {
            return null;
        }
        $isCoded = (ord($block[$at]) & 0x80) !== 0;
        $length = self::readInteger($block, $at, 7);
        if ($length === null || $at + $length > strlen($block)) {
            return null;
        }
        $text = substr($block, $at, $length);
        $at += $length;
        return $isCoded ? self::uncode($text) : $text;
    }

    private static function uncode(string $text): ?string
    {
        $codes = self::codes();
        $plain = '';
        $code = $bits = 0;
        for ($i = 0, $length = strlen($text); $i < $length; $i++) {
            $byte = ord($text[$i]);
            for ($bit = 7; $bit >= 0; $bit--) {
                $code = $code << 1 | $byte >> $bit & 1;
                $found = $codes[++$bits][$code] ?? null;
                if ($found !== null) {
                    $plain .= $found;
                    $code = $bits = 0;
                } elseif ($bits > 30) {
                    return null;
                }
            }
        }
        // What is left are the first bits of the end, which are ones.
        return $bits < 8 && $code === (1 << $bits) - 1 ? $plain : null;
    }

    private static function codes(): array
    {
        if (self::$codes === []) {
            $code = 0;
            for ($length = 5; $length <= 30; $length++) {
                for ($byte = 0; $byte < 256; $byte++) {
                    if (ord(self::CODE_LENGTHS[$byte]) - ord('A') + 5 === $length) {
                        self::$codes[$length][$code++] = chr($byte);
                    }
                }
                $code <<= 1;
            }
        }
        return self::$codes;
    }
}
