<?php

declare(strict_types=1);

function new_connection(string $host = 'localhost'): mysqli
{
    $settings = db_settings();
    return new mysqli($host, $settings['user'], $settings['password'], $settings['database'], 0, $settings['socket']);
}

/** Without a pool, the next best: a connection of the process, kept for its next request. */
function persistent_connection(): mysqli
{
    return new_connection('p:localhost');
}

function rows(mysqli $connection, string $query): array
{
    $statement = $connection->prepare($query);
    $statement->execute();
    return $statement->get_result()->fetch_all(MYSQLI_ASSOC);
}
