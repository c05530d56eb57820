<?php

declare(strict_types=1);

namespace Guestbook;

/** Where everything is kept that visitors bring: outside of the public folder. */
final readonly class DataFolder
{
    private function __construct(public string $path)
    {
    }

    /** `GUESTBOOK_DATA`, or `data` beside `public`; made on first use. */
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
        // Two first requests may come at once: what counts is that the folder is there.
        if (!is_dir($path) && !@mkdir($path, 0o750, true) && !is_dir($path)) {
            throw new Problem(500, "The guestbook cannot make the folder $path: let PHP's user write there.");
        }
        if (!is_writable($path)) {
            throw new Problem(500, "The guestbook cannot write to $path: give that folder to PHP's user.");
        }
        return $path;
    }
}
