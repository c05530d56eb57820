<?php

namespace Outboard;

function fetch(string $url, array $options = []): FetchResponse
{
    return Engine\fetch_as($url, $options === [] ? Engine\NO_OPTIONS : $options + Engine\NO_OPTIONS);
}

final class FetchResponse
{
    /** @internal */
    public function __construct(
        public readonly int $status,
        public readonly string $protocol,
        public readonly string $url,
        public readonly array $headers,
        public readonly string $body,
    ) {
    }

    public function header(string $name): ?string
    {
        $values = $this->headers[strtolower($name)] ?? null;
        return $values === null ? null : implode(', ', $values);
    }

    public function json(): mixed
    {
        return json_decode($this->body, true, 512, JSON_THROW_ON_ERROR);
    }

    public function ok(): bool
    {
        return $this->status < 400;
    }
}

class FetchException extends \RuntimeException
{
    /** @internal */
    public function __construct(string $message, public readonly string $reason = '', public readonly string $url = '')
    {
        parent::__construct($message);
    }
}

namespace Outboard\Engine;

const NO_OPTIONS = [
    'method' => null,
    'headers' => [],
    'query' => [],
    'body' => null,
    'json' => null,
    'form' => null,
    'timeout' => 30.0,
    'connect_timeout' => 5.0,
    'redirects' => 5,
    'retries' => 1,
    'max_body_bytes' => 16777216,
    'verify' => true,
    'decompress' => true,
    'http2' => true,
];

function fetch_as(string $url, array $options): \Outboard\FetchResponse
{
    if (count($options) !== count(NO_OPTIONS)) {
        $unknown = implode(', ', array_keys(array_diff_key($options, NO_OPTIONS)));
        throw new \ValueError("Outboard\\fetch(): unknown options: $unknown");
    }
    $lines = '';
    $body = $options['body'] ?? '';
    $contentType = null;
    if ($options['json'] !== null) {
        $body = json_encode($options['json'], JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
        $contentType = 'application/json';
    } elseif ($options['form'] !== null) {
        $body = http_build_query($options['form']);
        $contentType = 'application/x-www-form-urlencoded';
    }
    foreach ($options['headers'] as $name => $values) {
        foreach ((array) $values as $value) {
            if (strpbrk("$name$value", "\r\n\0") !== false) {
                throw new \ValueError("Outboard\\fetch(): the header $name contains a line break");
            }
            $lines .= "$name: $value\n";
        }
        if ($contentType !== null && strcasecmp($name, 'Content-Type') === 0) {
            $contentType = null;
        }
    }
    if ($contentType !== null) {
        $lines .= "Content-Type: $contentType\n";
    }
    if ($options['query'] !== []) {
        $url .= (str_contains($url, '?') ? '&' : '?') . http_build_query($options['query']);
    }
    if (strncasecmp($url, 'http://', 7) !== 0 && strncasecmp($url, 'https://', 8) !== 0) {
        throw new \Outboard\FetchException('a URL starts with http:// or https://', 'bad_call', $url);
    }
    $result = fetch(
        $options['method'] ?? ($body === '' && $contentType === null && $options['body'] === null ? 'GET' : 'POST'),
        $url,
        $lines,
        $body,
        (int) ($options['connect_timeout'] * 1000),
        (int) ($options['timeout'] * 1000),
        $options['max_body_bytes'],
        $options['redirects'],
        $options['retries'],
        ($options['verify'] ? 1 : 0) | ($options['decompress'] ? 2 : 0) | ($options['http2'] ? 4 : 0),
    );
    if (count($result) === 2) {
        throw new \Outboard\FetchException("$url: $result[1]", FAILURES[$result[0]] ?? 'protocol', $url);
    }
    [$status, $version, $from, $headers, $content] = $result;
    return new \Outboard\FetchResponse($status, $version === 2 ? '2' : '1.1', $from, $headers, $content);
}
