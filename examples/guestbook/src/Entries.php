<?php

declare(strict_types=1);

namespace Guestbook;

use PDO;

/** The entries of the guestbook, newest first. */
final readonly class Entries
{
    public const NAME_MAX = 60;
    public const MESSAGE_MAX = 1000;

    public function __construct(private PDO $database)
    {
    }

    public function count(): int
    {
        return (int) $this->database->query('SELECT count(*) FROM entries')->fetchColumn();
    }

    /** @return list<array{id: int, name: string, message: string, picture: ?string, written_at: int}> */
    public function page(int $number, int $size): array
    {
        $query = $this->database->prepare('SELECT * FROM entries ORDER BY id DESC LIMIT ? OFFSET ?');
        $query->bindValue(1, $size, PDO::PARAM_INT);
        $query->bindValue(2, ($number - 1) * $size, PDO::PARAM_INT);
        $query->execute();
        return $query->fetchAll();
    }

    /** @return ?array{id: int, name: string, message: string, picture: ?string, written_at: int} */
    public function find(int $id): ?array
    {
        $query = $this->database->prepare('SELECT * FROM entries WHERE id = ?');
        $query->execute([$id]);
        return $query->fetch() ?: null;
    }

    public function add(string $name, string $message, ?string $picture = null): int
    {
        $query = $this->database->prepare(
            'INSERT INTO entries (name, message, picture, written_at) VALUES (?, ?, ?, ?)'
        );
        $query->execute([$name, $message, $picture, time()]);
        return (int) $this->database->lastInsertId();
    }

    /** What is wrong with an entry, by field; the form and the API say the same. */
    public static function errors(string $name, string $message): array
    {
        return array_filter([
            'name' => self::lengthMistake('name', $name, self::NAME_MAX),
            'message' => self::lengthMistake('message', $message, self::MESSAGE_MAX),
        ]);
    }

    private static function lengthMistake(string $field, string $text, int $most): ?string
    {
        // With /u, a string that is not UTF-8 has no length at all.
        $length = preg_match_all('/./su', $text);
        return match (true) {
            $length === false => "The $field is not valid UTF-8.",
            $length === 0 => "The $field is missing.",
            $length > $most => "The $field is longer than $most characters.",
            default => null,
        };
    }
}
