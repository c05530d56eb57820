<?php

namespace Outboard;

final class Response
{
    public function __construct(
        public readonly mixed $body = '',
        public readonly int $status = 200,
        public readonly array $headers = [],
    ) {
    }

    public static function json(mixed $value, int $status = 200, array $headers = []): self
    {
        $body = json_encode($value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
        return new self($body, $status, $headers + ['Content-Type' => 'application/json']);
    }

    public static function html(string $body, int $status = 200, array $headers = []): self
    {
        return new self($body, $status, $headers + ['Content-Type' => 'text/html; charset=utf-8']);
    }

    public static function text(string $body, int $status = 200, array $headers = []): self
    {
        return new self($body, $status, $headers + ['Content-Type' => 'text/plain; charset=utf-8']);
    }

    public static function redirect(string $location, int $status = 302): self
    {
        return new self('', $status, ['Location' => $location]);
    }

    public static function file(string $path, array $headers = []): self
    {
        return new self('', 200, $headers + ['X-Sendfile' => $path]);
    }

    public static function events(iterable $events, array $headers = []): self
    {
        $lines = static function () use ($events): iterable {
            foreach ($events as $event) {
                yield Engine\event_text($event);
            }
        };
        return new self($lines, 200, $headers + [
            'Content-Type' => 'text/event-stream',
            'Cache-Control' => 'no-store',
        ]);
    }

    public function withBody(mixed $body): self
    {
        return new self($body, $this->status, $this->headers);
    }

    public function withStatus(int $status): self
    {
        return new self($this->body, $status, $this->headers);
    }

    public function withHeader(string $name, string $value): self
    {
        $others = array_filter(
            $this->headers,
            static fn (string $other) => strcasecmp($other, $name) !== 0,
            ARRAY_FILTER_USE_KEY,
        );
        return new self($this->body, $this->status, $others + [$name => $value]);
    }

    public function withAddedHeader(string $name, string $value): self
    {
        $headers = $this->headers;
        $headers[$name] = [...(array) ($headers[$name] ?? []), $value];
        return new self($this->body, $this->status, $headers);
    }

    public function withCookie(string $name, string $value, array $options = []): self
    {
        $line = rawurlencode($name) . '=' . rawurlencode($value);
        $options += ['path' => '/', 'httponly' => true, 'samesite' => 'Lax'];
        foreach ($options as $option => $setting) {
            $line .= match (true) {
                $option === 'expires' => '; Expires=' . gmdate('D, d M Y H:i:s', (int) $setting) . ' GMT',
                $setting === true => '; ' . $option,
                $setting === false, $setting === null => '',
                default => "; $option=$setting",
            };
        }
        return $this->withAddedHeader('Set-Cookie', $line);
    }
}

namespace Outboard\Engine;

/** Sends the result of a handler. */
function send(mixed $result): void
{
    if ($result === null) {
        return;
    }
    if (is_string($result)) {
        echo $result;
        return;
    }
    if (!$result instanceof \Outboard\Response) {
        if (!is_array($result) && !$result instanceof \JsonSerializable) {
            throw new \TypeError('a handler must return a Response, a string, an array or nothing, not ' . get_debug_type($result));
        }
        $result = \Outboard\Response::json($result);
    }
    http_response_code($result->status);
    foreach ($result->headers as $name => $values) {
        $replace = true;
        foreach ((array) $values as $value) {
            \header("$name: $value", $replace);
            $replace = false;
        }
    }
    send_body($result->body);
}

function send_body(mixed $body): void
{
    if (is_string($body)) {
        echo $body;
        return;
    }
    // A buffer, such as that of output_buffering, would hold the pieces back.
    while (ob_get_level() > 0 && @ob_end_flush()) {
        continue;
    }
    if ($body instanceof \Closure) {
        $body = $body() ?? [];
    }
    if (is_resource($body)) {
        fpassthru($body);
        return;
    }
    foreach (is_iterable($body) ? $body : [(string) $body] as $piece) {
        echo $piece;
        flush();
        if (connection_aborted()) {
            return;
        }
    }
}

/** One server-sent event (HTML, section 9.2). */
function event_text(string|array $event): string
{
    if (is_string($event)) {
        $event = ['data' => $event];
    }
    $text = '';
    foreach (['event', 'id', 'retry'] as $field) {
        if (isset($event[$field])) {
            $text .= $field . ': ' . strtr((string) $event[$field], "\r\n", '  ') . "\n";
        }
    }
    $data = $event['data'] ?? '';
    $data = is_string($data) ? $data : json_encode($data, JSON_THROW_ON_ERROR);
    foreach (preg_split('/\r\n|\r|\n/', $data) as $line) {
        $text .= "data: $line\n";
    }
    return $text . "\n";
}
