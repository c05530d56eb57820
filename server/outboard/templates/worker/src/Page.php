<?php

declare(strict_types=1);

/** A page with a title and a sentence. */
final class Page
{
    public static function of(string $title, string $text): string
    {
        [$title, $text] = array_map(htmlspecialchars(...), [$title, $text]);
        return <<<HTML
            <!doctype html>
            <html lang="en">
            <head>
              <meta charset="utf-8">
              <meta name="viewport" content="width=device-width, initial-scale=1">
              <title>$title</title>
              <link rel="stylesheet" href="/style.css">
            </head>
            <body><main><h1>$title</h1><p>$text</p></main></body>
            </html>
            HTML;
    }
}
