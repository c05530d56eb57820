<?php

declare(strict_types=1);

namespace Outboard\Tests\Mvc;

use Outboard\Engine\Log;
use Outboard\Mvc\Application;
use Outboard\Request;
use Outboard\Response;
use Outboard\Testing\FakeRequest;
use PHPUnit\Framework\TestCase;

final class ApplicationTest extends TestCase
{
    private static Application $application;

    public static function setUpBeforeClass(): void
    {
        self::$application = new Application(__DIR__ . '/modules', environment: 'production');
    }

    /** @dataProvider conventions */
    public function testTheConventionFindsActions(string $target, string $expected): void
    {
        self::assertSame($expected, self::body(new FakeRequest(target: $target)));
    }

    /** @return list<array{string, string}> */
    public static function conventions(): array
    {
        $page = '<title>A &amp; B</title><p>&lt;you&gt;</p>' . "\n";
        return [
            ['/', $page],
            ['/demo', $page],
            ['/demo/', $page],
            ['/demo/index', $page],
            ['/demo/index/index?x=1', $page],
            ['/demo/index/fullSpeed', 'full speed'],
            ['/shop/goods', '{"method":"GET"}'],
            ['/shop/harbour/about', '["shop\\\\controller\\\\harbour"]'],
        ];
    }

    /** @dataProvider nowhere */
    public function testAnUnknownActionIsA404(string $target): void
    {
        $response = self::send(new FakeRequest(target: $target));
        self::assertSame(404, $response->status);
        self::assertStringContainsString('There is nothing at', self::text($response));
    }

    /** @return list<array{string}> */
    public static function nowhere(): array
    {
        return [
            ['/favicon.ico'], ['/shop/common/about'], ['/nowhere'], ['/demo/nowhere'], ['/demo/index/nowhere'], ['/demo/index/helper'],
            ['/demo/index/actionIndex'], ['/Demo/index/index'], ['/demo/index/index/more'], ['/shop'],
            ['/shop/goods/show'], ['/goods/x'], ['/../demo'], ['/<b>'],
        ];
    }

    public function testVariablesAreFilledByTheirTypes(): void
    {
        self::assertSame('{"id":7,"factor":1.5,"size":null}', self::body(new FakeRequest(target: '/goods/7')));
        $filled = self::body(new FakeRequest(target: '/goods/7?factor=2&size=l&id=9'));
        self::assertSame('{"id":7,"factor":2,"size":"Large"}', $filled);
        self::assertSame('["a b","c/d"]', self::body(new FakeRequest(target: '/goods/by/a%20b/c/d')));
    }

    public function testARouteTakesItsMethodsOnly(): void
    {
        self::assertSame(405, self::send(new FakeRequest('PUT', '/goods/7'))->status);
        self::assertSame('GET, DELETE, PATCH', self::send(new FakeRequest('PUT', '/goods/7'))->headers['Allow']);
        self::assertSame('{"id":7,"factor":1.5,"size":null}', self::body(new FakeRequest('HEAD', '/goods/7')));
    }

    public function testEachMethodOfARouteHasNamesOfItsOwnForTheVariables(): void
    {
        self::assertSame('{"amended":7}', self::body(new FakeRequest('PATCH', '/goods/7')));
    }

    public function testEachWrongFieldHasASentence(): void
    {
        $order = new FakeRequest('POST', '/goods', form: ['name' => 'too long', 'email' => 'x', 'size' => 'm']);
        $response = json_decode(self::body($order), true);
        self::assertIsArray($response);
        self::assertSame([
            'name' => 'is longer than 5',
            'pieces' => 'is missing',
            'email' => 'is not an e-mail address',
            'size' => 'is none of s, l',
        ], $response['fields']);
        self::assertSame([422, 422], [$response['code'], self::send($order)->status]);
        $order = new FakeRequest('POST', '/goods', form: ['name' => ' rope ', 'pieces' => '3', 'size' => 's']);
        self::assertSame('{"name":"rope","pieces":3,"size":"Small"}', self::body($order));
    }

    public function testRequestsWithSideEffectsNeedAToken(): void
    {
        self::assertSame(403, self::send(new FakeRequest('DELETE', '/goods/7'))->status);
        self::assertSame(403, self::send(new FakeRequest('POST', '/demo/index/fullSpeed', form: ['_token' => ['x']]))->status);
    }

    public function testProblemsHaveTheirOwnCode(): void
    {
        $response = self::send(new FakeRequest(target: '/demo/index/jsonError'));
        self::assertSame([400, '{"code":1001,"msg":"refused"}'], [$response->status, $response->body]);
    }

    public function testInProductionAnExceptionIsOnlyLogged(): void
    {
        Log::take();
        $response = self::send(new FakeRequest(target: '/demo/index/broken'));
        self::assertSame(500, $response->status);
        self::assertStringNotContainsString('secret', self::text($response));
        self::assertStringContainsString('DomainException: a secret', implode("\n", Log::take()));
        $json = new FakeRequest(target: '/demo/index/broken', headers: ['Host' => 'a', 'Accept' => 'application/json']);
        self::assertSame('{"code":500,"msg":"Something went wrong here."}', self::body($json));
    }

    public function testInDevelopmentThePageShowsTheSource(): void
    {
        (new FakeRequest(target: '/demo/index/broken'))->import();
        $response = (new Application(__DIR__ . '/modules', environment: 'development'))->handle(new Request());
        self::assertInstanceOf(Response::class, $response);
        self::assertStringContainsString('throw new \DomainException(&apos;a secret&apos;);', self::text($response));
        self::assertStringContainsString('demo\controller\index-&gt;actionBroken', self::text($response));
    }

    public function testNamedRoutesHaveUrls(): void
    {
        self::assertSame('/goods/7?size=l', self::$application->url('item', ['id' => 7, 'size' => 'l']));
        self::assertSame('/goods/by/a%20b/c', self::$application->url('by', ['name' => 'a b', 'rest' => 'c']));
        $this->expectExceptionMessage('the route item needs id');
        self::$application->url('item');
    }

    private static function send(FakeRequest $request): Response
    {
        $request->import();
        $response = self::$application->handle(new Request());
        return $response instanceof Response ? $response : Response::html((string) $response);
    }

    private static function body(FakeRequest $request): string
    {
        return self::text(self::send($request));
    }

    private static function text(Response $response): string
    {
        self::assertIsString($response->body);
        return $response->body;
    }
}
