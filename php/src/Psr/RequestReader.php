<?php

declare(strict_types=1);

namespace Outboard\Psr;

use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UriInterface;

/** Creates a PSR-7 request from the superglobals. */
final class RequestReader
{
    private readonly UploadReader $uploads;

    public function __construct(private readonly Factories $factories)
    {
        $this->uploads = new UploadReader($factories);
    }

    /**
     * @param resource $body
     * @throws \InvalidArgumentException if PSR-7 objects reject the client's values
     */
    public function read($body): ServerRequestInterface
    {
        $method = self::text('REQUEST_METHOD', 'GET');
        $target = self::text('REQUEST_URI', '/');
        $request = $this->factories->requests->createServerRequest($method, $this->uri($target), $_SERVER)
            ->withProtocolVersion(self::version())
            ->withCookieParams($_COOKIE)
            ->withQueryParams($_GET)
            ->withUploadedFiles($this->uploads->read($_FILES))
            ->withBody($this->factories->streams->createStreamFromResource($body));
        if ($target === '*') {
            $request = $request->withRequestTarget('*');
        }
        foreach (self::headers() as [$name, $value]) {
            $request = $request->withHeader($name, $value);
        }
        return self::isForm($request) ? $request->withParsedBody($_POST) : $request;
    }

    private function uri(string $target): UriInterface
    {
        // The absolute form (RFC 9112, 3.2.2) includes the host.
        if (preg_match('~^https?://~i', $target) === 1) {
            return $this->factories->uris->createUri($target);
        }
        $https = self::text('HTTPS', '');
        $scheme = $https !== '' && strcasecmp($https, 'off') !== 0 ? 'https' : 'http';
        $host = self::text('HTTP_HOST', self::text('SERVER_NAME', 'localhost'));
        return $this->factories->uris->createUri("$scheme://$host" . ($target === '*' ? '' : $target));
    }

    /**
     * Pairs: as a key of an array, a name such as "123" or "-1" would be an int.
     *
     * @return list<array{string, string}>
     */
    private static function headers(): array
    {
        $headers = [];
        foreach ($_SERVER as $key => $value) {
            if (!is_string($value)) {
                continue;
            }
            // The name of an environment variable may be numeric, which makes its key an int.
            // @mago-expect analysis:redundant-cast
            $key = (string) $key;
            if (str_starts_with($key, 'HTTP_')) {
                $key = substr($key, 5);
            } elseif ($key !== 'CONTENT_TYPE' && $key !== 'CONTENT_LENGTH' || $value === '') {
                continue;
            }
            if ($key !== '') {
                $headers[] = [ucwords(strtolower(strtr($key, '_', '-')), '-'), $value];
            }
        }
        return $headers;
    }

    private static function version(): string
    {
        $protocol = self::text('SERVER_PROTOCOL', 'HTTP/1.1');
        return str_starts_with($protocol, 'HTTP/') ? substr($protocol, 5) : '1.1';
    }

    /** PHP fills $_POST only for these (rfc1867.c, php_content_types.c). */
    private static function isForm(ServerRequestInterface $request): bool
    {
        $type = strtolower(trim(explode(';', $request->getHeaderLine('Content-Type'))[0]));
        return $request->getMethod() === 'POST'
            && in_array($type, ['application/x-www-form-urlencoded', 'multipart/form-data'], true);
    }

    private static function text(string $key, string $default): string
    {
        $value = $_SERVER[$key] ?? null;
        return is_string($value) && $value !== '' ? $value : $default;
    }
}
