<?php

declare(strict_types=1);

/** The books of a database file. */
final class Books
{
    private readonly PDO $database;

    public function __construct(string $path)
    {
        $this->database = new PDO("sqlite:$path");
        // Workers boot at the same time, and SQLite does not wait when the journal's mode changes.
        $lock = fopen("$path.lock", 'c') ?: throw new RuntimeException("$path.lock cannot be opened");
        flock($lock, LOCK_EX);
        $this->database->exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000');
        $this->database->exec(
            'CREATE TABLE IF NOT EXISTS books (
                id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, author TEXT NOT NULL, year INTEGER NOT NULL
            )',
        );
    }

    /** @return list<Book> */
    public function all(): array
    {
        $rows = $this->run('SELECT id, title, author, year FROM books ORDER BY id')->fetchAll(PDO::FETCH_ASSOC);
        return array_map(self::book(...), $rows);
    }

    /** @throws Problem */
    public function get(int $id): Book
    {
        $row = $this->run('SELECT id, title, author, year FROM books WHERE id = ?', $id)->fetch(PDO::FETCH_ASSOC);
        return is_array($row) ? self::book($row) : throw self::missing($id);
    }

    public function add(Book $book): Book
    {
        $this->run('INSERT INTO books (title, author, year) VALUES (?, ?, ?)', $book->title, $book->author, $book->year);
        return $book->withId((int) $this->database->lastInsertId());
    }

    /** @throws Problem */
    public function put(int $id, Book $book): Book
    {
        $changed = $this->run(
            'UPDATE books SET title = ?, author = ?, year = ? WHERE id = ?',
            $book->title,
            $book->author,
            $book->year,
            $id,
        );
        return $changed->rowCount() === 1 ? $book->withId($id) : throw self::missing($id);
    }

    /** @throws Problem */
    public function remove(int $id): void
    {
        if ($this->run('DELETE FROM books WHERE id = ?', $id)->rowCount() === 0) {
            throw self::missing($id);
        }
    }

    private function run(string $statement, string|int ...$values): PDOStatement
    {
        $prepared = $this->database->prepare($statement);
        $prepared->execute($values);
        return $prepared;
    }

    /** @param array<string, mixed> $row */
    private static function book(array $row): Book
    {
        return new Book((string) $row['title'], (string) $row['author'], (int) $row['year'], (int) $row['id']);
    }

    private static function missing(int $id): Problem
    {
        return new Problem(404, "There is no book $id.");
    }
}
