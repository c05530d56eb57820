<?php

declare(strict_types=1);

namespace demo\model;

/** The board of notes, in SQLite; opened once per worker. */
final class Board
{
    private readonly \PDO $database;

    public function __construct(string $file)
    {
        $this->database = new \PDO("sqlite:$file", options: [\PDO::ATTR_DEFAULT_FETCH_MODE => \PDO::FETCH_ASSOC]);
        $this->database->exec('PRAGMA busy_timeout = 5000');
        $this->database->exec('CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, name TEXT, text TEXT, at INTEGER)');
    }

    public function add(Note $note): void
    {
        $this->database->prepare('INSERT INTO note (name, text, at) VALUES (?, ?, ?)')
            ->execute([$note->name, $note->text, time()]);
    }

    /** @return list<array{id: int, name: string, text: string, at: int}> the newest first */
    public function all(): array
    {
        return $this->database->query('SELECT * FROM note ORDER BY id DESC LIMIT 50')->fetchAll();
    }

    /** @return array{id: int, name: string, text: string, at: int}|null */
    public function get(int $id): ?array
    {
        $query = $this->database->prepare('SELECT * FROM note WHERE id = ?');
        $query->execute([$id]);
        return $query->fetch() ?: null;
    }
}
