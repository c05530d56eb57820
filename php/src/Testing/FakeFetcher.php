<?php

declare(strict_types=1);

namespace Outboard\Testing;

use Outboard\FetchedResponse;
use Outboard\Fetcher;

/** Responds from a table, and records the calls. */
final class FakeFetcher implements Fetcher
{
    /** @var list<array{url: string, options: array<string, mixed>}> */
    public array $calls = [];

    /** @param array<string, FetchedResponse|\RuntimeException> $responses by URL */
    public function __construct(private readonly array $responses = [])
    {
    }

    public function fetch(string $url, array $options = []): FetchedResponse
    {
        $this->calls[] = ['url' => $url, 'options' => $options];
        $response = $this->responses[$url] ?? throw new \LogicException("no response is prepared for $url");
        return $response instanceof FetchedResponse ? $response : throw $response;
    }
}
