<?php

declare(strict_types=1);

namespace Outboard;

/** Makes HTTP requests. HostFetcher has the gateway make them; tests use Testing\FakeFetcher. */
interface Fetcher
{
    /**
     * @param array<string, mixed> $options those of Outboard\fetch()
     * @throws \RuntimeException when there is no whole answer; any status is an answer
     */
    public function fetch(string $url, array $options = []): Fetched;
}
