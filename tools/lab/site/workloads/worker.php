<?php
// A worker script: values are cached in an array, connections in a pool.
require __DIR__ . '/functions.php';
require __DIR__ . '/Pool.php';

function cached(string $key, Closure $make): string
{
    static $values = [];
    return $values[$key] ??= $make();
}

function with_database(Closure $use): mixed
{
    static $pool = null;
    $pool ??= new Pool((int) '@CONNECTIONS@', static fn (): mysqli => connect('localhost'));
    return $pool->with($use);
}

/** Workload 9 with concurrent queries. */
function nine_in_parallel(): string
{
    Outboard\concurrently(array_fill(0, 20, static fn () => with_database(sleep_once(...))));
    return load_classes(100) . read_cache(10_000) . write_and_read(10) . "20 queries\n";
}

foreach (require __DIR__ . '/classes.php' as $class) {
    class_exists($class);
}
Outboard\serve(static function (Outboard\Request $request): string {
    $path = $request->path();
    return match (true) {
        $path === '/test_09_parallel.php' => nine_in_parallel(),
        str_starts_with($path, '/test_') => workload((int) substr($path, 6, 2)),
        default => 'ok',
    };
});
