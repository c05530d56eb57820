<?php

declare(strict_types=1);

namespace Guestbook;

/** The directory of everything that visitors bring: outside of the public directory. */
final readonly class DataDirectory
{
    private function __construct(public string $path)
    {
    }

    /** `GUESTBOOK_DATA`, or `data` next to `public`; created on first use. */
    public static function open(): self
    {
        return new self(self::make(getenv('GUESTBOOK_DATA') ?: dirname(__DIR__) . '/data'));
    }

    public function below(string $name): string
    {
        return self::make("{$this->path}/$name");
    }

    private static function make(string $path): string
    {
        // Two first requests may come at once: what counts is that the directory exists.
        if (!is_dir($path) && !@mkdir($path, 0o750, true) && !is_dir($path)) {
            throw new Problem(500, "The guestbook cannot create the directory $path: let PHP's user write there.");
        }
        if (!is_writable($path)) {
            throw new Problem(500, "The guestbook cannot write to $path: give that directory to PHP's user.");
        }
        return $path;
    }
}
