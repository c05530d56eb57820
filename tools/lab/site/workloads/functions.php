<?php
// The eleven workloads, the same code for every server. Servers differ only in cached() and
// with_database(), which keep values and connections between requests: see classic.php and
// worker.php.
require __DIR__ . '/autoload.php';

function workload(int $number): string
{
    return match ($number) {
        1, 2 => 'ok',
        3 => load_classes(100),
        4 => rows(connect('localhost')),
        5 => with_database(rows(...)),
        6 => cached('rows', static fn (): string => with_database(rows(...))),
        7 => load_classes(100) . read_cache(10_000),
        8 => load_classes(100) . read_cache(10_000) . write_and_read(10),
        9 => load_classes(100) . read_cache(10_000) . write_and_read(10) . sleep_there(20),
        10 => load_classes(50) . read_cache(1_000) . write_and_read(1) . sleep_there(3),
        11 => load_classes(100) . read_cache(1_000) . with_database(two_queries(...)),
    };
}

/** Loads this many of the generated classes, chosen at random. */
function load_classes(int $count): string
{
    $names = require __DIR__ . '/classes.php';
    foreach (array_rand($names, $count) as $at) {
        class_exists($names[$at]) || throw new LogicException("there is no class $names[$at]");
    }
    return "$count classes\n";
}

function read_cache(int $times): string
{
    for ($time = 0; $time < $times; $time++) {
        $key = 'entry ' . $time % 100;
        $value = cached($key, static fn (): string => "the value of $key");
    }
    return "$times reads, the last of '$value'\n";
}

function write_and_read(int $times): string
{
    $bytes = 0;
    for ($time = 0; $time < $times; $time++) {
        $file = __DIR__ . '/files/' . getmypid() . "-$time";
        file_put_contents($file, str_repeat('0123456789', 100));
        $bytes += strlen(file_get_contents($file));
    }
    return "$bytes bytes\n";
}

function connect(string $host): mysqli
{
    return new mysqli($host, 'root', '', 'lab', 0, '@SOCKET@');
}

function rows(mysqli $database): string
{
    $statement = $database->prepare('SELECT * FROM test1');
    $statement->execute();
    return print_r($statement->get_result()->fetch_all(MYSQLI_ASSOC), true);
}

function two_queries(mysqli $database): string
{
    $rows = rows($database);
    $count = $database->query('SELECT COUNT(*) FROM test1')->fetch_row()[0];
    return "$rows$count rows\n";
}

/** Queries that take 10 ms each, one after the other. */
function sleep_there(int $times): string
{
    for ($time = 0; $time < $times; $time++) {
        with_database(sleep_once(...));
    }
    return "$times queries\n";
}

function sleep_once(mysqli $database): void
{
    $database->query('SELECT SLEEP(0.01)')->fetch_row();
}
