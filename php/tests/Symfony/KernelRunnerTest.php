<?php

declare(strict_types=1);

namespace Outboard\Tests\Symfony;

use Outboard\Symfony\KernelRunner;
use Outboard\Testing\FakeRequest;
use Outboard\Testing\FakeRuntime;
use PHPUnit\Framework\TestCase;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

final class KernelRunnerTest extends TestCase
{
    public function testTheOrderIsHandleSendTerminateReset(): void
    {
        $kernel = new RecordingKernel();
        $runtime = new FakeRuntime(new FakeRequest(target: '/one?a=1'), new FakeRequest(target: '/two'));
        self::assertSame(0, (new KernelRunner($kernel, host: $runtime))->run());
        self::assertSame(
            ['boot', 'handle /one', 'send', 'terminate /one', 'boot', 'handle /two', 'send', 'terminate /two', 'boot'],
            $kernel->events,
        );
        self::assertSame(['response to /one', 'response to /two'], [
            $runtime->responses[0]->body(),
            $runtime->responses[1]->body(),
        ]);
    }

    public function testVariablesOfTheBootStayAndHeadersDoNot(): void
    {
        $_SERVER['APP_ENV'] = 'staging';
        $_SERVER['HTTP_X_LEFT_OVER'] = 'from the boot';
        $kernel = new RecordingKernel();
        $runtime = new FakeRuntime(new FakeRequest());
        (new KernelRunner($kernel, host: $runtime))->run();
        self::assertNotNull($kernel->request);
        self::assertSame('staging', $kernel->request->server->get('APP_ENV'));
        self::assertSame('web=1&worker=1', $kernel->request->server->get('APP_RUNTIME_MODE'));
        self::assertFalse($kernel->request->headers->has('X-Left-Over'));
    }

    public function testTheLoopEndsAfterItsMaximum(): void
    {
        $kernel = new RecordingKernel();
        $runtime = new FakeRuntime(new FakeRequest(), new FakeRequest(), new FakeRequest());
        (new KernelRunner($kernel, 2, $runtime))->run();
        self::assertCount(2, $runtime->responses);
    }

    public function testTwoRequestsAtATimeAreRefused(): void
    {
        $runtime = new FakeRuntime(new FakeRequest(), new FakeRequest());
        $kernel = new RecordingKernel();
        $runner = new KernelRunner($kernel, host: $runtime);
        $kernel->during = static fn () => $runner->run();
        $this->expectExceptionMessage('concurrency = 1');
        $runner->run();
    }

    public function testAKernelThatThrowsServesTheNextRequest(): void
    {
        $runtime = new FakeRuntime(new FakeRequest(), new FakeRequest());
        $kernel = new RecordingKernel();
        $kernel->during = static fn () => throw new \DomainException('on purpose');
        $runner = new KernelRunner($kernel, host: $runtime);
        try {
            $runner->run();
            self::fail('the server responds to the exception');
        } catch (\DomainException) {
            $kernel->during = null;
        }
        $runner->run();
        self::assertSame('response to /', $runtime->responses[1]->body());
        self::assertNotContains('terminate /', array_slice($kernel->events, 0, 3));
    }

    public function testOutsideAWorkerThereIsOneRequest(): void
    {
        (new FakeRequest(target: '/plain'))->import();
        $kernel = new RecordingKernel();
        $this->expectOutputString('response to /plain');
        (new KernelRunner($kernel))->run();
        self::assertSame(['handle /plain', 'send', 'terminate /plain'], $kernel->events);
    }
}
