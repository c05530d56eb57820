<?php

/** Server-sent events and a download that is made while it is sent. An open stream costs a coroutine. */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

Outboard\serve(static fn (Request $request): Response => match ($request->path()) {
    '/events' => Response::events(ticks((int) $request->query('count', 60), (float) $request->query('every', 1))),
    '/numbers.csv' => new Response(
        static fn (): iterable => lines((int) $request->query('lines', 100_000)),
        headers: [
            'Content-Type' => 'text/csv; charset=utf-8',
            'Content-Disposition' => 'attachment; filename="numbers.csv"',
        ],
    ),
    default => Response::text("There is nothing at {$request->path()}.\n", 404),
});

/** @return iterable<array{id: string, event: string, data: array<string, string|int|false>}> */
function ticks(int $count, float $seconds): iterable
{
    for ($number = 1; $number <= $count; $number++) {
        yield [
            'id' => (string) $number,
            'event' => 'tick',
            'data' => ['number' => $number, 'time' => date('H:i:s'), 'worker' => getmypid()],
        ];
        if ($number < $count) {
            Outboard\sleep($seconds);
        }
    }
}

/** @return iterable<string> about 16 KiB a piece: a piece is a chunk on the wire */
function lines(int $count): iterable
{
    $piece = "number,square\n";
    for ($number = 1; $number <= $count; $number++) {
        $piece .= $number . ',' . $number ** 2 . "\n";
        if (strlen($piece) >= 16 * 1024) {
            yield $piece;
            $piece = '';
        }
    }
    yield $piece;
}
