<?php

declare(strict_types=1);

/** A book; there is none with a field missing or wrong. */
final readonly class Book
{
    public function __construct(
        public string $title,
        public string $author,
        public int $year,
        public ?int $id = null,
    ) {
    }

    /**
     * @param array<array-key, mixed> $fields as a client has sent them
     * @throws Problem that names every error at once
     */
    public static function from(array $fields): self
    {
        $title = self::words($fields['title'] ?? null);
        $author = self::words($fields['author'] ?? null);
        $year = $fields['year'] ?? null;
        $errors = array_filter([
            'title' => $title === null ? 'A title has 1 to 200 characters.' : null,
            'author' => $author === null ? 'An author has 1 to 200 characters.' : null,
            'year' => !is_int($year) || $year < 1000 || $year > 2100 ? 'A year is a number from 1000 to 2100.' : null,
        ]);
        if ($errors !== [] || $title === null || $author === null || !is_int($year)) {
            throw new Problem(422, 'Some fields are not right.', $errors);
        }
        return new self($title, $author, $year);
    }

    public function withId(int $id): self
    {
        return new self($this->title, $this->author, $this->year, $id);
    }

    private static function words(mixed $value): ?string
    {
        $text = is_string($value) ? trim($value) : '';
        return preg_match('/^.{1,200}$/us', $text) === 1 ? $text : null;
    }
}
