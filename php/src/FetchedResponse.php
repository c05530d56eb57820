<?php

declare(strict_types=1);

namespace Outboard;

/** The response of a Fetcher; unlike a FetchResponse, it can be constructed. */
final class FetchedResponse
{
    /** @param array<string, list<string>> $headers by lower-case name */
    public function __construct(
        public readonly int $status,
        public readonly string $body = '',
        public readonly array $headers = [],
        public readonly string $url = '',
    ) {
    }

    /** The values of a header, joined by commas; null when it was not sent. */
    public function header(string $name): ?string
    {
        $values = $this->headers[strtolower($name)] ?? null;
        return $values === null ? null : implode(', ', $values);
    }

    /** @throws \JsonException */
    public function json(): mixed
    {
        return json_decode($this->body, true, 512, JSON_THROW_ON_ERROR);
    }

    /** Whether the status is below 400. */
    public function ok(): bool
    {
        return $this->status < 400;
    }
}
