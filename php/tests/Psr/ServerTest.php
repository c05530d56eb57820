<?php

declare(strict_types=1);

namespace Outboard\Tests\Psr;

use Outboard\Psr\Factories;
use Outboard\Psr\Server;
use Outboard\Testing\FakeRequest;
use Outboard\Testing\FakeRuntime;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

final class ServerTest extends PsrTestCase
{
    /** @dataProvider packages */
    public function testAHandlerServesManyRequests(Factories $factories): void
    {
        $handler = new class () implements RequestHandlerInterface {
            private int $requests = 0;

            public function handle(ServerRequestInterface $request): ResponseInterface
            {
                return new \Nyholm\Psr7\Response(201, [], ++$this->requests . ' ' . $request->getUri()->getPath());
            }
        };
        $runtime = new FakeRuntime(new FakeRequest(target: '/a'), new FakeRequest(target: '/b'));
        Server::run($handler, $factories, $runtime);
        self::assertSame(['1 /a', '2 /b'], array_map(static fn ($response) => $response->body(), $runtime->responses));
        self::assertSame(201, $runtime->responses[1]->status);
    }

    public function testAnExceptionIsA500AndTheNextRequestIsServed(): void
    {
        $runtime = new FakeRuntime(new FakeRequest(target: '/broken'), new FakeRequest(target: '/fine'));
        Server::run(static fn (ServerRequestInterface $request): ResponseInterface => match ($request->getUri()->getPath()) {
            '/fine' => new \Nyholm\Psr7\Response(200, [], 'fine'),
            default => throw new \DomainException('secret detail'),
        }, runtime: $runtime);
        self::assertSame([500, 200], array_column($runtime->responses, 'status'));
        self::assertSame("Internal Server Error\n", $runtime->responses[0]->body());
        self::assertStringContainsString('DomainException: secret detail', $runtime->lines[0]['message']);
    }

    /** @dataProvider packages */
    public function testARequestThatPsrObjectsRejectIsA400(Factories $factories): void
    {
        $runtime = new FakeRuntime(new FakeRequest(headers: ['Host' => 'a:99999']));
        Server::run(static fn () => self::fail('the handler must not see it'), $factories, $runtime);
        self::assertSame(400, $runtime->responses[0]->status);
        self::assertSame(LOG_NOTICE, $runtime->lines[0]['level']);
    }

    public function testHeadHasTheHeadersOfGetAndNoBody(): void
    {
        $runtime = new FakeRuntime(new FakeRequest('HEAD'));
        Server::run(static fn () => new \Nyholm\Psr7\Response(200, ['Content-Length' => '4'], 'body'), runtime: $runtime);
        self::assertSame('4', $runtime->responses[0]->header('Content-Length'));
        self::assertSame('', $runtime->responses[0]->body());
    }
}
