<?php

declare(strict_types=1);

namespace Guestbook;

use PDO;

/** Opens the SQLite file, and makes it on first use. */
final class Database
{
    private const SCHEMA = <<<'SQL'
        CREATE TABLE entries (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            message TEXT NOT NULL,
            picture TEXT,
            written_at INTEGER NOT NULL
        ) STRICT
        SQL;

    public static function open(string $path): PDO
    {
        if (!is_file($path)) {
            self::create($path);
        }
        return self::connect($path);
    }

    /** Made aside and put in place whole: of several first requests one wins, none sees half. */
    private static function create(string $path): void
    {
        $new = "$path." . getmypid();
        $database = self::connect($new);
        // Readers go on while another process writes; the file stores this setting.
        $database->exec('PRAGMA journal_mode = WAL');
        $database->exec(self::SCHEMA);
        unset($database);
        @link($new, $path);
        unlink($new);
    }

    private static function connect(string $path): PDO
    {
        $database = new PDO("sqlite:$path", options: [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        ]);
        // Writers wait for each other instead of failing.
        $database->exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = NORMAL');
        return $database;
    }
}
