<?php

declare(strict_types=1);

namespace Outboard\Tests;

use Outboard\FetchedResponse;
use Outboard\SequentialTasks;
use Outboard\Testing\FakeFetcher;
use PHPUnit\Framework\TestCase;

final class WaitingTest extends TestCase
{
    public function testTasksKeepTheirKeysAndOrder(): void
    {
        $results = (new SequentialTasks())->concurrently(['b' => static fn () => 1, 'a' => static fn () => 2]);
        self::assertSame(['b' => 1, 'a' => 2], $results);
    }

    public function testTheFirstExceptionIsThrownOnceAllTasksHaveEnded(): void
    {
        $ended = false;
        $this->expectExceptionMessage('first');
        try {
            (new SequentialTasks())->concurrently([
                static fn () => throw new \RuntimeException('first'),
                static fn () => throw new \RuntimeException('second'),
                static function () use (&$ended): void {
                    $ended = true;
                },
            ]);
        } finally {
            self::assertTrue($ended);
        }
    }

    public function testAFakeFetcherRespondsFromItsTableAndRecordsCalls(): void
    {
        $fetcher = new FakeFetcher(['http://a/' => new FetchedResponse(200, '{"a":1}', ['x-tag' => ['one', 'two']])]);
        $response = $fetcher->fetch('http://a/', ['timeout' => 2]);
        self::assertTrue($response->ok());
        self::assertSame(['a' => 1], $response->json());
        self::assertSame('one, two', $response->header('X-Tag'));
        self::assertNull($response->header('X-Other'));
        self::assertSame([['url' => 'http://a/', 'options' => ['timeout' => 2]]], $fetcher->calls);
        $this->expectException(\LogicException::class);
        $fetcher->fetch('http://unprepared/');
    }

    public function testAFakeFetcherFailsAsPrepared(): void
    {
        $fetcher = new FakeFetcher(['http://down/' => new \RuntimeException('refused')]);
        $this->expectExceptionMessage('refused');
        $fetcher->fetch('http://down/');
    }
}
