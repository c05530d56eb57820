<?php

namespace Outboard;

final class Request
{
    // The order of ring's Field.
    private const METHOD = 0;
    private const QUERY = 2;
    private const PROTOCOL = 8;
    private const REMOTE_ADDR = 10;
    private const SERVER_NAME = 12;
    private const SCHEME = 13;
    private const REQUEST_ID = 14;

    private int $number;

    /** @internal */
    public function __construct()
    {
        $this->number = Engine\request_number();
    }

    public function method(): string
    {
        return Engine\field($this->number, self::METHOD);
    }

    public function path(): string
    {
        return Engine\path($this->number);
    }

    public function target(): string
    {
        return Engine\target($this->number);
    }

    public function url(): string
    {
        return $this->scheme() . '://' . $this->host() . $this->target();
    }

    public function protocol(): string
    {
        return substr(Engine\field($this->number, self::PROTOCOL), 5);
    }

    public function scheme(): string
    {
        return Engine\field($this->number, self::SCHEME);
    }

    public function host(): string
    {
        return $this->header('Host') ?? Engine\field($this->number, self::SERVER_NAME);
    }

    public function client(): string
    {
        return Engine\field($this->number, self::REMOTE_ADDR);
    }

    public function id(): string
    {
        return Engine\field($this->number, self::REQUEST_ID);
    }

    public function header(string $name): ?string
    {
        return Engine\header($this->number, $name);
    }

    public function headers(): array
    {
        $headers = [];
        foreach (Engine\headers($this->number) as [$name, $value]) {
            $headers[strtolower($name)][] = $value;
        }
        return $headers;
    }

    public function query(?string $name = null, mixed $default = null): mixed
    {
        Engine\field($this->number, self::QUERY);
        return $name === null ? $_GET : $_GET[$name] ?? $default;
    }

    public function cookie(string $name, ?string $default = null): ?string
    {
        $value = $this->cookies()[$name] ?? null;
        return is_string($value) ? $value : $default;
    }

    public function cookies(): array
    {
        Engine\field($this->number, self::METHOD);
        return $_COOKIE;
    }

    public function form(?string $name = null, mixed $default = null): mixed
    {
        Engine\field($this->number, self::METHOD);
        return $name === null ? $_POST : $_POST[$name] ?? $default;
    }

    public function files(): array
    {
        Engine\field($this->number, self::METHOD);
        return $_FILES;
    }

    public function body(): string
    {
        return (string) stream_get_contents($this->stream());
    }

    /** @return resource */
    public function stream()
    {
        Engine\field($this->number, self::METHOD);
        return fopen('php://input', 'rb');
    }

    public function json(): mixed
    {
        return json_decode($this->body(), true, 512, JSON_THROW_ON_ERROR);
    }

    public function server(): array
    {
        return Engine\server($this->number);
    }
}
