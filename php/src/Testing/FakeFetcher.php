<?php

declare(strict_types=1);

namespace Outboard\Testing;

use Outboard\Fetched;
use Outboard\Fetcher;

/** Answers from a table, and remembers what it was asked. */
final class FakeFetcher implements Fetcher
{
    /** @var list<array{url: string, options: array<string, mixed>}> */
    public array $calls = [];

    /** @param array<string, Fetched|\RuntimeException> $answers by URL */
    public function __construct(private readonly array $answers = [])
    {
    }

    public function fetch(string $url, array $options = []): Fetched
    {
        $this->calls[] = ['url' => $url, 'options' => $options];
        $answer = $this->answers[$url] ?? throw new \LogicException("no answer is prepared for $url");
        return $answer instanceof Fetched ? $answer : throw $answer;
    }
}
