<?php

namespace Swoole\Http;

/** A cookie of Response::cookie(), built step by step. */
class Cookie
{
    private string $name = '';

    private string $value = '';

    private int $expires = 0;

    private string $path = '';

    private string $domain = '';

    private bool $secure = false;

    private bool $httpOnly = false;

    private string $sameSite = '';

    private string $priority = '';

    private bool $partitioned = false;

    public function __construct(private readonly bool $encode = true)
    {
    }

    public function withName(string $name): self
    {
        $this->name = $name;
        return $this;
    }

    public function withValue(string $value = ''): self
    {
        $this->value = $value;
        return $this;
    }

    public function withExpires(int $expires = 0): self
    {
        $this->expires = $expires;
        return $this;
    }

    public function withPath(string $path = ''): self
    {
        $this->path = $path;
        return $this;
    }

    public function withDomain(string $domain = ''): self
    {
        $this->domain = $domain;
        return $this;
    }

    public function withSecure(bool $secure = false): self
    {
        $this->secure = $secure;
        return $this;
    }

    public function withHttpOnly(bool $httpOnly = false): self
    {
        $this->httpOnly = $httpOnly;
        return $this;
    }

    public function withSameSite(string $sameSite = ''): self
    {
        $this->sameSite = $sameSite;
        return $this;
    }

    public function withPriority(string $priority = ''): self
    {
        $this->priority = $priority;
        return $this;
    }

    public function withPartitioned(bool $partitioned = false): self
    {
        $this->partitioned = $partitioned;
        return $this;
    }

    public function toArray(): array
    {
        return [
            'name' => $this->name, 'value' => $this->value, 'path' => $this->path, 'domain' => $this->domain, 'samesite' => $this->sameSite, 'priority' => $this->priority,
            'encode' => $this->encode, 'expires' => $this->expires, 'secure' => $this->secure, 'httponly' => $this->httpOnly, 'partitioned' => $this->partitioned,
        ];
    }

    /** The value of a header Set-Cookie; false: a part of it is invalid. */
    public function toString(): string|false
    {
        $value = $this->encode ? urlencode($this->value) : $this->value;
        return \Outboard\Engine\Swoole\cookie_line($this->name, $value, $this->expires, $this->path, $this->domain, $this->secure, $this->httpOnly, $this->sameSite, $this->priority, $this->partitioned);
    }

    public function reset(): void
    {
        $this->name = $this->value = $this->path = $this->domain = $this->sameSite = $this->priority = '';
        $this->expires = 0;
        $this->secure = $this->httpOnly = $this->partitioned = false;
    }
}
