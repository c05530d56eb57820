<?php
// One call to the gateway after another, with pauses in which the server has nothing to do: the microseconds
// of each. The pauses are of many lengths, so that no timer of the server hides a call that waits for one.

const CALLS = 24;
const PAUSE_US = 11_000;

/** @return array<string, Closure(): mixed> */
function calls(): array
{
    $kv = new Outboard\KV();
    $kv->put('key', 'value');
    return [
        'snapshot_retire' => static fn () => Outboard\snapshot_retire('lab'),
        'cache_purge' => static fn () => Outboard\cache_purge('/lab'),
        'RateLimit' => static fn () => (new Outboard\RateLimit('lab'))->take('lab'),
        'KV::get' => static fn () => $kv->get('key'),
        'KV::put' => static fn () => $kv->put('key', 'value'),
        'dispatch' => static fn () => Outboard\dispatch('lab', []),
        'task' => static fn () => Outboard\task('lab', []),
        'fetch' => static fn () => Outboard\fetch('@BACKEND@'),
    ];
}

/** Without a name the response that says that the server is up. */
function measured(?string $name): string
{
    if ($name === null) {
        return 'up';
    }
    $call = calls()[$name];
    $call();
    $times = [];
    for ($i = 0; $i < CALLS; $i++) {
        usleep(PAUSE_US * ($i % 12 + 1));
        $from = hrtime(true);
        $call();
        $times[] = intdiv(hrtime(true) - $from, 1000);
    }
    return implode(' ', $times);
}
