<?php

namespace Swoole\Coroutine\Http;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine\Socket;

/** A client of HTTP/1.1 and WebSockets on a Coroutine\Socket that stays connected between requests. */
class Client
{
    public int $errCode = 0;

    public string $errMsg = '';

    public bool $connected = false;

    public string $host = '';

    public int $port = 0;

    public bool $ssl = false;

    public ?array $setting = null;

    public ?string $requestMethod = null;

    public ?array $requestHeaders = null;

    public mixed $requestBody = null;

    public ?array $uploadFiles = null;

    public ?string $downloadFile = null;

    public int $downloadOffset = 0;

    public int $statusCode = 0;

    public ?array $headers = null;

    public ?array $set_cookie_headers = null;

    public ?array $cookies = null;

    public string $body = '';

    private ?Socket $socket = null;

    private ?Engine\WebSocketPeer $peer = null;

    private bool $defer = false;

    private bool $isSent = false;

    private string $sentMethod = '';

    private string $headerOut = '';

    private ?string $basic = null;

    public function __construct(string $host, int $port = 0, bool $ssl = false)
    {
        if ($host === '') {
            throw new Client\Exception('the host of a client is empty', SWOOLE_ERROR_INVALID_PARAMS);
        }
        $this->host = $host;
        $this->port = $port ?: ($ssl ? 443 : 80);
        $this->ssl = $ssl;
    }

    public function __destruct()
    {
    }

    public function set(array $settings): bool
    {
        if ($settings === []) {
            return false;
        }
        $this->setting = $settings + ($this->setting ?? []);
        if (isset($settings['defer'])) {
            $this->defer = (bool) $settings['defer'];
        }
        return true;
    }

    public function setMethod(string $method): bool
    {
        $this->requestMethod = $method;
        return true;
    }

    public function setHeaders(array $headers): bool
    {
        $this->requestHeaders = $headers;
        return true;
    }

    public function setCookies(array $cookies): bool
    {
        $this->cookies = $cookies;
        return true;
    }

    public function setBasicAuth(string $username, #[\SensitiveParameter] string $password): void
    {
        $this->basic = base64_encode("$username:$password");
    }

    public function setData(array|string $data): bool
    {
        $this->requestBody = $data;
        return true;
    }

    public function addFile(string $path, string $name, ?string $type = null, ?string $filename = null, int $offset = 0, int $length = 0): bool
    {
        $size = is_file($path) ? (int) filesize($path) : 0;
        if ($size === 0 || $offset < 0 || $offset >= $size) {
            return false;
        }
        $this->uploadFiles[] = [
            'path' => $path, 'name' => $name, 'type' => $type ?? Engine\type_of($path), 'filename' => $filename ?? basename($path),
            'offset' => $offset, 'size' => $length > 0 ? min($length, $size - $offset) : $size - $offset,
        ];
        return true;
    }

    public function addData(string $path, string $name, ?string $type = null, ?string $filename = null): bool
    {
        $this->uploadFiles[] = ['content' => $path, 'name' => $name, 'type' => $type ?? 'application/octet-stream', 'filename' => $filename ?? $name, 'size' => strlen($path)];
        return true;
    }

    public function get(string $path): bool
    {
        return $this->request($this->requestMethod ?? 'GET', $path, $this->requestBody);
    }

    public function post(string $path, mixed $data): bool
    {
        return $this->request('POST', $path, $data);
    }

    public function execute(string $path): bool
    {
        $method = $this->requestMethod ?? ($this->requestBody === null && $this->uploadFiles === null ? 'GET' : 'POST');
        return $this->request($method, $path, $this->requestBody);
    }

    public function download(string $path, string $file, int $offset = 0): bool
    {
        $this->downloadFile = $file;
        $this->downloadOffset = $offset;
        $done = $this->request($this->requestMethod ?? 'GET', $path, $this->requestBody);
        return $done;
    }

    /** A WebSocket handshake (RFC 6455, 4.1). */
    public function upgrade(string $path): bool
    {
        $key = base64_encode(random_bytes(16));
        $headers = $this->requestHeaders;
        $this->requestHeaders = ['Connection' => 'Upgrade', 'Upgrade' => 'websocket', 'Sec-WebSocket-Version' => '13', 'Sec-WebSocket-Key' => $key] + ($headers ?? []);
        if (!empty($this->setting['websocket_compression'])) {
            $this->requestHeaders['Sec-WebSocket-Extensions'] = 'permessage-deflate; client_no_context_takeover; server_no_context_takeover';
        }
        $defer = $this->defer;
        $this->defer = false;
        $done = $this->request('GET', $path, null);
        $this->defer = $defer;
        $this->requestHeaders = $headers;
        if (!$done || $this->statusCode !== 101) {
            return false;
        }
        if (($this->headers['sec-websocket-accept'] ?? '') !== Engine\WebSocketPeer::acceptFor($key)) {
            $this->close();
            return $this->fail(SWOOLE_ERROR_WEBSOCKET_HANDSHAKE_FAILED);
        }
        $setting = $this->setting ?? [];
        $setting['websocket_compression'] = !empty($setting['websocket_compression']) && str_contains((string) ($this->headers['sec-websocket-extensions'] ?? ''), 'permessage-deflate');
        $this->peer = new Engine\WebSocketPeer($this->socket, true, $setting);
        return true;
    }

    public function push(mixed $data, int $opcode = WEBSOCKET_OPCODE_TEXT, int $flags = SWOOLE_WEBSOCKET_FLAG_FIN): bool
    {
        if ($this->peer === null) {
            return $this->fail(SWOOLE_ERROR_WEBSOCKET_UNCONNECTED);
        }
        return $this->peer->send($data, $opcode, $flags) || $this->fail($this->socket->errCode);
    }

    public function ping(string $data = ''): bool
    {
        return $this->push($data, WEBSOCKET_OPCODE_PING);
    }

    public function disconnect(int $code = SWOOLE_WEBSOCKET_CLOSE_NORMAL, string $reason = ''): bool
    {
        $sent = $this->push(pack('n', $code) . substr($reason, 0, 123), WEBSOCKET_OPCODE_CLOSE);
        $this->close();
        return $sent;
    }

    public function setDefer(bool $defer = true): bool
    {
        $this->defer = $defer;
        return true;
    }

    public function getDefer(): bool
    {
        return $this->defer;
    }

    /** The response of a deferred request, or the next message of a WebSocket connection. */
    public function recv(float $timeout = 0): mixed
    {
        if ($this->peer !== null) {
            $message = $this->peer->receive($timeout !== 0.0 ? $timeout : $this->timeout());
            if ($message === false) {
                return $this->fail($this->socket->errCode);
            }
            $message === '' && $this->close();
            return $message;
        }
        if (!$this->isSent) {
            return $this->fail($this->defer ? SWOOLE_ERROR_CLIENT_NO_CONNECTION : SOCKET_EBADF);
        }
        $this->isSent = false;
        return $this->readResponse($timeout !== 0.0 ? $timeout : $this->timeout());
    }

    public function getBody(): string|false
    {
        return $this->body;
    }

    public function getStatusCode(): int|false
    {
        return $this->statusCode;
    }

    public function getHeaders(): array|false|null
    {
        return $this->headers;
    }

    public function getCookies(): array|false|null
    {
        return $this->cookies;
    }

    public function getHeaderOut(): string|false
    {
        return $this->headerOut === '' ? false : $this->headerOut;
    }

    public function getPeerCert(): string|false
    {
        return $this->socket?->peerCertificate() ?? false;
    }

    public function getpeername(): array|false
    {
        return $this->socket === null ? false : Engine\host_and_port($this->socket->getpeername());
    }

    public function getsockname(): array|false
    {
        return $this->socket === null ? false : Engine\host_and_port($this->socket->getsockname());
    }

    public function close(): bool
    {
        $was = $this->socket !== null;
        $this->socket?->close();
        $this->socket = $this->peer = null;
        $this->connected = $this->isSent = false;
        return $was;
    }

    private function timeout(): float
    {
        return Engine\setting_timeout($this->setting, 'read_timeout', 'socket_read_timeout', -1.0);
    }

    private function request(string $method, string $path, mixed $data): bool
    {
        if ($this->isSent || $this->peer !== null) {
            return $this->fail(SOCKET_EBUSY);
        }
        $this->statusCode = $this->errCode = 0;
        $this->body = $this->errMsg = '';
        $this->headers = $this->set_cookie_headers = null;
        $pieces = $this->pieces($method, $path, $data);
        // A connection that the server has closed meanwhile is replaced, unless the server says why.
        if ($this->socket !== null && !$this->socket->checkLiveness()) {
            $this->close();
        }
        if ($this->socket === null && !$this->connect()) {
            return false;
        }
        $this->requestBody = $this->uploadFiles = null;
        foreach ($pieces as $piece) {
            $sent = is_array($piece) ? $this->socket->sendFile(...$piece) : $this->socket->sendAll($piece) === strlen($piece);
            if (!$sent) {
                return $this->broken(SWOOLE_HTTP_CLIENT_ESTATUS_SEND_FAILED, $this->socket->errCode);
            }
        }
        $this->sentMethod = $method;
        if ($this->defer) {
            return $this->isSent = true;
        }
        return $this->readResponse($this->timeout());
    }

    private function connect(): bool
    {
        [$host, $domain] = match (true) {
            str_starts_with($this->host, 'unix:') => [preg_replace('~^unix:/*~', '/', $this->host), AF_UNIX],
            filter_var($this->host, FILTER_VALIDATE_IP, FILTER_FLAG_IPV6) !== false => [$this->host, AF_INET6],
            default => [$this->host, AF_INET],
        };
        $setting = $this->setting ?? [];
        $socket = new Socket($domain, SOCK_STREAM, 0);
        $socket->setProtocol($setting + (filter_var($host, FILTER_VALIDATE_IP) ? [] : ['ssl_host_name' => $host]));
        $socket->setTimeout(Engine\setting_timeout($setting, 'write_timeout', 'socket_write_timeout', -1.0), SWOOLE_EVENT_WRITE);
        if (isset($setting['bind_address']) || isset($setting['bind_port'])) {
            $socket->bind($setting['bind_address'] ?? '0.0.0.0', (int) ($setting['bind_port'] ?? 0));
        }
        $seconds = Engine\setting_timeout($setting, 'connect_timeout', 'socket_connect_timeout', 2.0);
        $connected = isset($setting['http_proxy_host']) && !$this->ssl
            ? $socket->connect($setting['http_proxy_host'], (int) ($setting['http_proxy_port'] ?? 8080), $seconds)
            : Engine\Proxy::connect($socket, $setting, $host, $this->port, $seconds);
        if (!$connected || $this->ssl && !$socket->sslHandshake()) {
            $code = $socket->errCode;
            $socket->close();
            return $this->broken(SWOOLE_HTTP_CLIENT_ESTATUS_CONNECT_FAILED, $code);
        }
        $this->socket = $socket;
        return $this->connected = true;
    }

    /**
     * What is sent: texts, and files as arguments of sendFile().
     *
     * @return list<string|array{string, int, int}>
     */
    private function pieces(string $method, string $path, mixed $data): array
    {
        $headers = [];
        foreach ($this->requestHeaders ?? [] as $name => $value) {
            if (strpbrk("$name", "\r\n:") === false) {
                $headers[strtolower((string) $name)] = [(string) $name, str_replace(["\r", "\n"], '', (string) $value)];
            }
        }
        $pieces = [];
        if ($this->uploadFiles !== null) {
            [$pieces, $type] = $this->multipart(is_array($data) ? $data : []);
            $headers['content-type'] = ['Content-Type', $type];
        } elseif (is_array($data)) {
            $pieces = [http_build_query($data)];
            $headers['content-type'] ??= ['Content-Type', 'application/x-www-form-urlencoded'];
        } elseif ($data !== null && $data !== '') {
            $pieces = [(string) $data];
        }
        $length = array_sum(array_map(static fn (string|array $piece): int => is_array($piece) ? $piece[2] : strlen($piece), $pieces));
        if ($pieces !== [] || in_array($method, ['POST', 'PUT', 'PATCH'], true)) {
            $headers['content-length'] = ['Content-Length', (string) $length];
        }
        $is_default = $this->port === ($this->ssl ? 443 : 80) || str_starts_with($this->host, 'unix:');
        $host = $headers['host'][1] ?? (str_starts_with($this->host, 'unix:') ? 'localhost' : (str_contains($this->host, ':') ? "[$this->host]" : $this->host) . ($is_default ? '' : ":$this->port"));
        unset($headers['host']);
        $headers['connection'] ??= ['Connection', $this->keepsAlive() ? 'keep-alive' : 'close'];
        if ($this->setting['http_compression'] ?? true) {
            $headers['accept-encoding'] ??= ['Accept-Encoding', 'gzip, deflate'];
        }
        if ($this->basic !== null) {
            $headers['authorization'] = ['Authorization', "Basic $this->basic"];
        }
        if ($this->downloadFile !== null && $this->downloadOffset > 0) {
            $headers['range'] ??= ['Range', "bytes=$this->downloadOffset-"];
        }
        if (($this->cookies ?? []) !== [] && !isset($headers['cookie'])) {
            $pairs = [];
            foreach ($this->cookies as $name => $value) {
                $pairs[] = $name . '=' . rawurlencode((string) $value);
            }
            $headers['cookie'] = ['Cookie', implode('; ', $pairs)];
        }
        $path = str_replace(["\r", "\n", ' '], ['', '', '%20'], $path === '' || $path[0] !== '/' && $path !== '*' ? "/$path" : $path);
        $is_proxied = isset($this->setting['http_proxy_host']) && !$this->ssl;
        $text = "$method " . ($is_proxied ? "http://$host" : '') . "$path HTTP/1.1\r\nHost: $host\r\n" . ($is_proxied ? Engine\Proxy::authorization($this->setting) : '');
        foreach ($headers as [$name, $value]) {
            $text .= "$name: $value\r\n";
        }
        $this->headerOut = "$text\r\n";
        if (is_string($pieces[0] ?? null) && strlen($pieces[0]) < 65536) {
            $pieces[0] = $this->headerOut . $pieces[0];
            return $pieces;
        }
        return [$this->headerOut, ...$pieces];
    }

    private function keepsAlive(): bool
    {
        return (bool) ($this->setting['keep_alive'] ?? true);
    }

    private function multipart(array $fields): array
    {
        $boundary = 'OutboardBoundary' . bin2hex(random_bytes(12));
        $text = '';
        $pieces = [];
        $quoted = static fn (string $name): string => addcslashes(str_replace(["\r", "\n"], '', $name), '"\\');
        foreach ($fields as $name => $value) {
            $text .= "--$boundary\r\nContent-Disposition: form-data; name=\"" . $quoted((string) $name) . "\"\r\n\r\n$value\r\n";
        }
        foreach ($this->uploadFiles as $file) {
            $text .= "--$boundary\r\nContent-Disposition: form-data; name=\"" . $quoted($file['name']) . '"; filename="' . $quoted($file['filename'])
                . "\"\r\nContent-Type: " . str_replace(["\r", "\n"], '', $file['type']) . "\r\n\r\n";
            if (isset($file['content'])) {
                $text .= $file['content'];
            } else {
                array_push($pieces, $text, [$file['path'], $file['offset'], $file['size']]);
                $text = '';
            }
            $text .= "\r\n";
        }
        $pieces[] = "$text--$boundary--\r\n";
        return [$pieces, "multipart/form-data; boundary=$boundary"];
    }

    private function readResponse(float $timeout): bool
    {
        $socket = $this->socket;
        $message = new Engine\HttpMessage($socket, (int) ($this->setting['package_max_length'] ?? PHP_INT_MAX), $timeout);
        do {
            if (!$message->readHead() || !preg_match('~^HTTP/1\.[01] (\d{3})~', $message->startLine, $found)) {
                return $this->interrupted($message->errCode ?: SWOOLE_ERROR_HTTP_INVALID_PROTOCOL);
            }
            $this->statusCode = (int) $found[1];
        } while ($this->statusCode >= 100 && $this->statusCode < 200 && $this->statusCode !== 101);
        $this->headers = $message->headers;
        $this->readCookies();
        $has_body = $this->sentMethod !== 'HEAD' && $this->statusCode !== 204 && $this->statusCode !== 304 && $this->statusCode !== 101;
        $file = $has_body ? $this->target() : null;
        if ($file === false) {
            $this->close();
            return $this->fail(SOCKET_ENOENT);
        }
        $decode = $this->decoder();
        $take = $file === null && $decode === null ? null : function (string $piece) use ($file, $decode, $message): bool {
            $piece = $decode === null ? $piece : $decode($piece);
            if ($file !== null) {
                return fwrite($file, $piece) === strlen($piece);
            }
            $message->body .= $piece;
            return true;
        };
        if ($has_body && !$message->readBody(true, $take)) {
            return $this->interrupted($message->errCode);
        }
        $this->headers = $message->headers;
        $this->body = $message->body;
        $connection = strtolower(implode(',', (array) ($message->headers['connection'] ?? '')));
        $is_old = str_starts_with($message->startLine, 'HTTP/1.0');
        if ($this->statusCode !== 101 && ($message->endsWithConnection || str_contains($connection, 'close') || $is_old && !str_contains($connection, 'keep-alive') || !$this->keepsAlive())) {
            $this->close();
        }
        return true;
    }

    /** @return resource|null|false where the body is stored */
    private function target(): mixed
    {
        if ($this->downloadFile === null) {
            return null;
        }
        $file = @fopen($this->downloadFile, $this->downloadOffset > 0 ? 'cb' : 'wb');
        if ($file !== false && $this->downloadOffset > 0) {
            fseek($file, $this->downloadOffset);
        }
        $this->downloadFile = null;
        $this->downloadOffset = 0;
        return $file;
    }

    private function decoder(): ?\Closure
    {
        $coding = strtolower(implode(',', (array) ($this->headers['content-encoding'] ?? '')));
        if (!($this->setting['body_decompression'] ?? true) || !in_array($coding, ['gzip', 'deflate'], true)) {
            return null;
        }
        $inflate = inflate_init($coding === 'gzip' ? ZLIB_ENCODING_GZIP : ZLIB_ENCODING_DEFLATE);
        return static fn (string $piece): string => (string) @inflate_add($inflate, $piece);
    }

    private function readCookies(): void
    {
        $lines = $this->headers['set-cookie'] ?? null;
        if ($lines === null) {
            return;
        }
        $this->set_cookie_headers = (array) $lines;
        foreach ($this->set_cookie_headers as $line) {
            [$name, $value] = explode('=', explode(';', $line, 2)[0], 2) + [1 => ''];
            $this->cookies[trim($name)] = urldecode(trim($value));
        }
    }

    private function interrupted(int $code): false
    {
        $status = $code === SOCKET_ETIMEDOUT ? SWOOLE_HTTP_CLIENT_ESTATUS_REQUEST_TIMEOUT : SWOOLE_HTTP_CLIENT_ESTATUS_SERVER_RESET;
        return $this->broken($status, $code);
    }

    private function broken(int $status, int $code): false
    {
        $this->close();
        $this->statusCode = $status;
        $this->downloadFile = null;
        $this->downloadOffset = 0;
        return $this->fail($code);
    }

    private function fail(int $code): false
    {
        $this->errCode = $code;
        $this->errMsg = $code === 0 ? '' : Engine\error_text($code);
        Engine\LastError::set($code);
        return false;
    }
}

/** What request(), get() and post() return. */
class ClientProxy extends Client
{
}

namespace Swoole\Coroutine\Http\Client;

class Exception extends \Swoole\Exception
{
}
