<?php

declare(strict_types=1);

namespace Outboard\Testing;

/** A request for FakeRuntime, in the terms of the superglobals. */
final class FakeRequest
{
    /**
     * @param array<string, string> $headers
     * @param array<string, string> $cookies
     * @param array<array-key, mixed> $form contents of $_POST
     * @param array<array-key, mixed> $files contents of $_FILES
     * @param array<string, mixed> $server further entries of $_SERVER
     */
    public function __construct(
        public readonly string $method = 'GET',
        public readonly string $target = '/',
        public readonly array $headers = ['Host' => 'localhost'],
        public readonly array $cookies = [],
        public readonly array $form = [],
        public readonly array $files = [],
        public readonly string $body = '',
        public readonly array $server = [],
    ) {
    }

    /** @return array<string, mixed> */
    public function toServer(): array
    {
        $server = [
            'REQUEST_METHOD' => $this->method,
            'REQUEST_URI' => $this->target,
            'QUERY_STRING' => $this->queryString(),
            'SERVER_PROTOCOL' => 'HTTP/1.1',
            'REQUEST_SCHEME' => 'http',
            'SERVER_NAME' => 'localhost',
            'SERVER_PORT' => '80',
            'REMOTE_ADDR' => '127.0.0.1',
            'SCRIPT_NAME' => '/index.php',
            'SCRIPT_FILENAME' => '/srv/public/index.php',
        ];
        foreach ($this->headers as $name => $value) {
            $key = strtoupper(strtr($name, '-', '_'));
            $server[in_array($key, ['CONTENT_TYPE', 'CONTENT_LENGTH'], true) ? $key : "HTTP_$key"] = $value;
        }
        return $this->server + $server;
    }

    /** Sets the superglobals. */
    public function import(): void
    {
        $_SERVER = $this->toServer();
        parse_str($this->queryString(), $_GET);
        $_POST = $this->form;
        $_COOKIE = $this->cookies;
        $_FILES = $this->files;
        $_REQUEST = $_POST + $_GET;
    }

    /** @return resource */
    public function open()
    {
        $stream = fopen('php://memory', 'w+b') ?: throw new \RuntimeException('no memory for a request body');
        fwrite($stream, $this->body);
        rewind($stream);
        return $stream;
    }

    private function queryString(): string
    {
        return explode('?', $this->target, 2)[1] ?? '';
    }
}
