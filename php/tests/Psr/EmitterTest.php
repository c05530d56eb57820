<?php

declare(strict_types=1);

namespace Outboard\Tests\Psr;

use GuzzleHttp\Psr7\PumpStream;
use Nyholm\Psr7\Response;
use Nyholm\Psr7\Stream;
use Outboard\Psr\Emitter;
use Outboard\Testing\FakeResponse;
use PHPUnit\Framework\TestCase;

final class EmitterTest extends TestCase
{
    public function testStatusReasonAndEveryHeaderLineAreSent(): void
    {
        $output = new FakeResponse();
        $response = (new Response(418, ['X-A' => '1'], 'tea', '1.1', 'Short and stout'))
            ->withAddedHeader('Set-Cookie', 'a=1')->withAddedHeader('Set-Cookie', 'b=2');
        (new Emitter())->emit($response, $output);
        self::assertSame(418, $output->status);
        self::assertSame('Short and stout', $output->reason);
        self::assertSame(['x-a' => ['1'], 'set-cookie' => ['a=1', 'b=2']], $output->headers);
        self::assertSame('tea', $output->body());
    }

    public function testABodyIsSentFromItsBeginning(): void
    {
        $body = Stream::create('whole');
        $body->seek(3);
        $output = new FakeResponse();
        (new Emitter())->emit(new Response(200, [], $body), $output);
        self::assertSame('whole', $output->body());
    }

    public function testALiveBodyIsSentPieceByPiece(): void
    {
        $output = new FakeResponse();
        (new Emitter())->emit(new Response(200, [], self::counting(3)), $output);
        self::assertSame('012', implode('', $output->pieces));
    }

    public function testALiveBodyEndsWhenTheClientDisconnects(): void
    {
        $pieces = 0;
        $endless = new PumpStream(static function () use (&$pieces): string {
            return str_repeat((string) ($pieces++ % 10), 64 * 1024);
        });
        $output = new FakeResponse(2);
        (new Emitter())->emit(new Response(200, [], $endless), $output);
        self::assertCount(2, $output->pieces);
        self::assertLessThan(5, $pieces);
    }

    /** @dataProvider responsesWithoutBody */
    public function testResponsesWithoutABodySendNone(int $status, bool $withBody): void
    {
        $output = new FakeResponse();
        (new Emitter())->emit(new Response($status, ['ETag' => '"1"'], 'not sent'), $output, $withBody);
        self::assertSame('', $output->body());
        self::assertSame('"1"', $output->header('ETag'));
    }

    /** @return array<string, array{int, bool}> */
    public static function responsesWithoutBody(): array
    {
        return ['HEAD' => [200, false], 'No Content' => [204, true], 'Not Modified' => [304, true]];
    }

    private static function counting(int $pieces): PumpStream
    {
        $next = 0;
        return new PumpStream(static function () use (&$next, $pieces): string|false {
            return $next < $pieces ? (string) $next++ : false;
        });
    }
}
