<?php

declare(strict_types=1);

namespace Outboard\Tests;

use Outboard\Testing\FakeRequest;
use Outboard\Testing\FakeRuntime;
use PHPUnit\Framework\TestCase;

final class FakeRuntimeTest extends TestCase
{
    public function testEachRequestHasItsOwnSuperglobalsAndResponse(): void
    {
        $runtime = new FakeRuntime(
            new FakeRequest(target: '/one?a[]=1', cookies: ['c' => '1']),
            new FakeRequest('POST', '/two', form: ['f' => '2'], body: 'f=2'),
        );
        while ($runtime->handleRequest(static function () use ($runtime): void {
            echo json_encode([$_SERVER['REQUEST_URI'], $_GET, $_POST, $_COOKIE, stream_get_contents($runtime->body())]);
        })) {
            continue;
        }
        self::assertSame('["\/one?a[]=1",{"a":["1"]},[],{"c":"1"},""]', $runtime->responses[0]->body());
        self::assertSame('["\/two",[],{"f":"2"},[],"f=2"]', $runtime->responses[1]->body());
    }

    public function testDeferredWorkRunsAfterTheResponse(): void
    {
        $runtime = new FakeRuntime(new FakeRequest());
        $seen = null;
        $runtime->handleRequest(static function () use ($runtime, &$seen): void {
            $runtime->defer(static function () use ($runtime, &$seen): void {
                $seen = $runtime->responses[0]->body();
            });
            http_response_code(202);
            echo 'whole';
        });
        self::assertSame('whole', $seen);
        self::assertSame(202, $runtime->responses[0]->status);
    }

    public function testWithoutRequestsTheWorkerStops(): void
    {
        $runtime = new FakeRuntime();
        self::assertFalse($runtime->handleRequest(static fn () => self::fail('there is no request')));
        $this->expectException(\LogicException::class);
        $runtime->output();
    }

    public function testAnExceptionReachesTheTestAndLeavesNoBufferBehind(): void
    {
        $runtime = new FakeRuntime(new FakeRequest());
        $level = ob_get_level();
        try {
            $runtime->handleRequest(static fn () => throw new \DomainException('on purpose'));
            self::fail('the exception is lost');
        } catch (\DomainException) {
            self::assertSame($level, ob_get_level());
        }
    }
}
