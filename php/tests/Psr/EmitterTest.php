<?php

declare(strict_types=1);

namespace Outboard\Tests\Psr;

use GuzzleHttp\Psr7\PumpStream;
use Nyholm\Psr7\Response;
use Nyholm\Psr7\Stream;
use Outboard\Psr\Emitter;
use Outboard\Testing\FakeAnswer;
use PHPUnit\Framework\TestCase;

final class EmitterTest extends TestCase
{
    public function testStatusReasonAndEveryHeaderLineLeave(): void
    {
        $answer = new FakeAnswer();
        $response = (new Response(418, ['X-A' => '1'], 'tea', '1.1', 'Short and stout'))
            ->withAddedHeader('Set-Cookie', 'a=1')->withAddedHeader('Set-Cookie', 'b=2');
        (new Emitter())->emit($response, $answer);
        self::assertSame(418, $answer->status);
        self::assertSame('Short and stout', $answer->reason);
        self::assertSame(['x-a' => ['1'], 'set-cookie' => ['a=1', 'b=2']], $answer->headers);
        self::assertSame('tea', $answer->body());
    }

    public function testABodyIsSentFromItsBeginning(): void
    {
        $body = Stream::create('whole');
        $body->seek(3);
        $answer = new FakeAnswer();
        (new Emitter())->emit(new Response(200, [], $body), $answer);
        self::assertSame('whole', $answer->body());
    }

    public function testALiveBodyLeavesPieceByPiece(): void
    {
        $answer = new FakeAnswer();
        (new Emitter())->emit(new Response(200, [], self::counting(3)), $answer);
        self::assertSame('012', implode('', $answer->pieces));
    }

    public function testALiveBodyEndsWhenTheClientHasGone(): void
    {
        $made = 0;
        $endless = new PumpStream(static function () use (&$made): string {
            return str_repeat((string) ($made++ % 10), 64 * 1024);
        });
        $answer = new FakeAnswer(2);
        (new Emitter())->emit(new Response(200, [], $endless), $answer);
        self::assertCount(2, $answer->pieces);
        self::assertLessThan(5, $made);
    }

    /** @dataProvider answersWithoutBody */
    public function testAnswersThatHaveNoBodySendNone(int $status, bool $withBody): void
    {
        $answer = new FakeAnswer();
        (new Emitter())->emit(new Response($status, ['ETag' => '"1"'], 'not sent'), $answer, $withBody);
        self::assertSame('', $answer->body());
        self::assertSame('"1"', $answer->header('ETag'));
    }

    /** @return array<string, array{int, bool}> */
    public static function answersWithoutBody(): array
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
