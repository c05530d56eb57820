<?php

declare(strict_types=1);

namespace Outboard;

/** Sends HTTP requests: HostFetcher through the gateway, Testing\FakeFetcher in tests. */
interface Fetcher
{
    /**
     * @param array<string, mixed> $options those of Outboard\fetch()
     * @throws \RuntimeException if there is no complete response; any status is a response
     */
    public function fetch(string $url, array $options = []): FetchedResponse;
}
