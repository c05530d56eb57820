<?php
// A process per request: values are cached in APCu, the connection is persistent.
require __DIR__ . '/functions.php';

function cached(string $key, Closure $make): string
{
    $value = apcu_fetch($key, $found);
    if (!$found) {
        $value = $make();
        apcu_add($key, $value);
    }
    return $value;
}

function with_database(Closure $use): mixed
{
    static $database = null;
    $database ??= connect('p:localhost');
    return $use($database);
}
