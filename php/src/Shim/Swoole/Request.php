<?php

declare(strict_types=1);

namespace Outboard\Shim\Swoole;

/** Swoole\Http\Request. As there, what was not sent is null. */
final class Request
{
    /** @var array<string, string> by name in lower case */
    public array $header = [];

    /** @var array<string, mixed> as $_SERVER, by name in lower case, without the headers */
    public array $server = [];

    /** @var array<array-key, mixed>|null */
    public ?array $get = null;

    /** @var array<array-key, mixed>|null */
    public ?array $post = null;

    /** @var array<string, string>|null */
    public ?array $cookie = null;

    /** @var array<array-key, mixed>|null */
    public ?array $files = null;

    private function __construct(private readonly \Outboard\Request $request)
    {
    }

    public static function of(\Outboard\Request $request): self
    {
        $of = new self($request);
        $of->header = array_map(static fn (array $values): string => implode(', ', $values), $request->headers());
        foreach ($request->server() as $name => $value) {
            if (!str_starts_with($name, 'HTTP_')) {
                $of->server[strtolower($name)] = $value;
            }
        }
        $of->server['request_uri'] = $of->server['path_info'] = $request->path();
        $of->get = $request->query() ?: null;
        $of->post = $request->form() ?: null;
        $of->cookie = $request->cookies() ?: null;
        $of->files = $request->files() ?: null;
        return $of;
    }

    public function rawContent(): string
    {
        return $this->request->body();
    }

    public function getContent(): string
    {
        return $this->rawContent();
    }

    public function getMethod(): string
    {
        return $this->request->method();
    }
}
