<?php

declare(strict_types=1);

namespace Guestbook;

use PDO;

/** Opens the SQLite file, and makes its table on first use. */
final class Database
{
    private const SCHEMA = <<<'SQL'
        CREATE TABLE IF NOT EXISTS entries (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            message TEXT NOT NULL,
            picture TEXT,
            written_at INTEGER NOT NULL
        ) STRICT
        SQL;

    public static function open(string $path): PDO
    {
        $isNew = !is_file($path) || filesize($path) === 0;
        $database = new PDO("sqlite:$path", options: [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        ]);
        // Writers wait for each other instead of failing; WAL lets readers go on meanwhile.
        $database->exec('PRAGMA busy_timeout = 5000');
        if ($isNew) {
            $database->exec('PRAGMA journal_mode = WAL');
            $database->exec(self::SCHEMA);
        }
        $database->exec('PRAGMA synchronous = NORMAL');
        return $database;
    }
}
