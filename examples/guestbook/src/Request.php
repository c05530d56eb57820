<?php

declare(strict_types=1);

namespace Guestbook;

/** The request of a browser. */
final readonly class Request
{
    public function __construct(
        public string $method,
        /** Decoded, below the directory that the guestbook is served from; starts with a slash. */
        public string $path,
        /** @var array<string, mixed> */
        public array $query,
        /** @var array<string, mixed> */
        public array $form,
        public string $contentType,
    ) {
    }

    public static function current(): self
    {
        $path = rawurldecode(strtok($_SERVER['REQUEST_URI'] ?? '/', '?'));
        $base = View::base();
        if (str_starts_with("$path/", "$base/")) {
            $path = substr($path, strlen($base)) ?: '/';
        }
        $type = strtolower(trim(explode(';', $_SERVER['CONTENT_TYPE'] ?? '')[0]));
        return new self($_SERVER['REQUEST_METHOD'] ?? 'GET', $path, $_GET, $_POST, $type);
    }

    /** Calls the handler of the method, and names the supported methods to others. */
    public function dispatch(callable ...$methods): Response
    {
        $method = $this->method === 'HEAD' ? 'GET' : $this->method;
        $handle = $methods[$method] ?? throw new Problem(
            405,
            "This address does not take {$this->method}.",
            ['Allow: ' . implode(', ', array_keys($methods))],
        );
        return $handle($this);
    }

    /** Whether the path has this form; `$part` gets what the group matched. */
    public function has(string $pattern, ?string &$part): bool
    {
        $found = preg_match($pattern, $this->path, $matches) === 1;
        $part = $matches[1] ?? null;
        return $found;
    }

    public function isForApi(): bool
    {
        return str_starts_with($this->path, '/api/');
    }

    /** A number of the query, from 1 on. */
    public function number(string $name, int $default, int $most = PHP_INT_MAX): int
    {
        $options = ['default' => $default, 'min_range' => 1, 'max_range' => $most];
        return filter_var($this->query[$name] ?? '', FILTER_VALIDATE_INT, ['options' => $options]);
    }

    /** A field of the form; '' when it is missing or no text. */
    public function text(string $name): string
    {
        $value = $this->form[$name] ?? '';
        return is_string($value) ? trim($value) : '';
    }

    /** PHP drops a form beyond post_max_size without an error. */
    public function wasDropped(): bool
    {
        return $this->form === [] && (int) ($_SERVER['CONTENT_LENGTH'] ?? 0) > 0;
    }
}
