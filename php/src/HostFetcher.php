<?php

declare(strict_types=1);

namespace Outboard;

/** Fetches through the gateway. */
final class HostFetcher implements Fetcher
{
    public function fetch(string $url, array $options = []): FetchedResponse
    {
        $response = fetch($url, $options);
        return new FetchedResponse($response->status, $response->body, $response->headers, $response->url);
    }
}
