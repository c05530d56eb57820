<?php

declare(strict_types=1);

namespace Outboard\Tests;

use Outboard\Runtimes;
use Outboard\SingleRuntime;
use PHPUnit\Framework\TestCase;

final class SingleRuntimeTest extends TestCase
{
    public function testPlainPhpHasOneRequest(): void
    {
        $runtime = Runtimes::here();
        self::assertInstanceOf(SingleRuntime::class, $runtime);
        self::assertFalse($runtime->isWorker());
        $order = [];
        $handler = static function () use ($runtime, &$order): void {
            $runtime->defer(static function () use (&$order): void {
                $order[] = 'deferred';
            });
            $order[] = 'handled';
        };
        self::assertFalse($runtime->handleRequest($handler));
        self::assertFalse($runtime->handleRequest($handler));
        self::assertSame(['handled', 'deferred'], $order);
    }

    public function testDeferredWorkRunsAfterAnExceptionToo(): void
    {
        $runtime = new SingleRuntime();
        $deferred = false;
        $this->expectException(\DomainException::class);
        try {
            $runtime->handleRequest(static function () use ($runtime, &$deferred): void {
                $runtime->defer(static function () use (&$deferred): void {
                    $deferred = true;
                });
                throw new \DomainException('on purpose');
            });
        } finally {
            self::assertTrue($deferred);
        }
    }
}
