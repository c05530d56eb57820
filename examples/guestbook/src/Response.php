<?php

declare(strict_types=1);

namespace Guestbook;

/** What the browser gets. */
final readonly class Response
{
    public function __construct(
        public int $status,
        /** @var list<string> */
        public array $headers,
        public string $body = '',
    ) {
    }

    public static function html(int $status, string $body): self
    {
        return new self($status, [
            'Content-Type: text/html; charset=utf-8',
            "Content-Security-Policy: default-src 'self'; form-action 'self'; frame-ancestors 'none'",
            'X-Content-Type-Options: nosniff',
            'Referrer-Policy: same-origin',
        ], $body);
    }

    /** @param list<string> $headers */
    public static function json(int $status, mixed $data, array $headers = []): self
    {
        $flags = JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR;
        $headers = ['Content-Type: application/json', ...$headers];
        return new self($status, $headers, json_encode($data, $flags) . "\n");
    }

    /** 303: the browser fetches the page again, and reloading it sends nothing twice. */
    public static function seeOther(string $path): self
    {
        return new self(303, ['Location: ' . View::url($path)]);
    }

    public function send(): void
    {
        http_response_code($this->status);
        foreach ($this->headers as $header) {
            header($header, false);
        }
        echo $this->body;
    }
}
