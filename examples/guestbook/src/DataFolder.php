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
        $path = getenv('GUESTBOOK_DATA') ?: dirname(__DIR__) . '/data';
        return new self(self::make($path));
    }

    public function below(string $name): string
    {
        return self::make("{$this->path}/$name");
    }

    private static function make(string $path): string
    {
        // Two first requests may come at once: what counts is that the folder is there.
        if (!is_dir($path) && !@mkdir($path, 0o750, true) && !is_dir($path) || !is_writable($path)) {
            $user = posix_getpwuid(posix_geteuid())['name'] ?? posix_geteuid();
            throw new Problem(500, "The guestbook cannot write to $path. Give that folder to the user $user.");
        }
        return $path;
    }
}
