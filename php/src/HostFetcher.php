<?php

declare(strict_types=1);

namespace Outboard;

/** Fetches through the gateway. */
final class HostFetcher implements Fetcher
{
    public function fetch(string $url, array $options = []): Fetched
    {
        $answer = fetch($url, $options);
        return new Fetched($answer->status, $answer->body, $answer->headers, $answer->url);
    }
}
