<?php

namespace Outboard;

final class RateLimit
{
    public function __construct(private readonly string $name)
    {
    }

    public function take(string|int $key, int $tokens = 1): RateLimitResult
    {
        return $this->send((string) $key, $tokens, true);
    }

    public function look(string|int $key, int $tokens = 1): RateLimitResult
    {
        return $this->send((string) $key, $tokens, false);
    }

    private function send(string $key, int $tokens, bool $takes): RateLimitResult
    {
        if ($tokens < 1 || $tokens > 0x7fffffff) {
            throw new \ValueError('the number of tokens is at least 1');
        }
        $response = Engine\rate($this->name, $key, $tokens, $takes);
        if (count($response) === 2) {
            throw new \RuntimeException($response[1]);
        }
        if ($response[0] !== 200) {
            throw new \ValueError($response[4]);
        }
        $result = unpack('Callowed/Vremaining/Pretry/Vlimit', $response[4]);
        return new RateLimitResult($result['allowed'] === 1, $result['remaining'], $result['retry'] / 1e9, $result['limit']);
    }
}

final class RateLimitResult
{
    /** @internal */
    public function __construct(
        public readonly bool $allowed,
        public readonly int $remaining,
        public readonly float $retryAfter,
        public readonly int $limit,
    ) {
    }
}
