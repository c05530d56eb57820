<?php

namespace Outboard\Engine\Swoole;

use Swoole\Coroutine\Socket;
use Swoole\Http\Request;
use Swoole\Http\Response;

/** @internal a request whose text the program or Coroutine\Http\Server has read */
final class ParsedRequest extends Request
{
    private string $data = '';

    private string $content = '';

    private bool $completed = false;

    private bool $failed = false;

    public function __construct(private readonly array $options = [])
    {
        $this->exchange = -1;
        $this->header = $this->server = $this->get = $this->cookie = $this->post = $this->files = $this->tmpfiles = null;
    }

    public function __destruct()
    {
        foreach ($this->tmpfiles ?? [] as $path) {
            is_file($path) && unlink($path);
        }
    }

    /** How many bytes of the data belong to the request. */
    public function parse(string $data): int|false
    {
        if ($this->completed || $this->failed) {
            return false;
        }
        $had = strlen($this->data);
        $this->data .= $data;
        $end = strpos($this->data, "\r\n\r\n");
        if ($end === false) {
            return strlen($data);
        }
        $lines = explode("\r\n", substr($this->data, 0, $end));
        $start = array_shift($lines);
        $headers = [];
        foreach ($lines as $line) {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $name = strtolower(trim($name));
            $headers[$name] = isset($headers[$name]) ? $headers[$name] . ', ' . trim($value) : trim($value);
        }
        $body = substr($this->data, $end + 4);
        $used = $end + 4;
        if (isset($headers['transfer-encoding'])) {
            $found = self::unchunk($body);
            if ($found === null) {
                return strlen($data);
            }
            [$body, $length] = $found;
            $used += $length;
        } else {
            $length = (int) ($headers['content-length'] ?? 0);
            if (strlen($body) < $length) {
                $this->server ?? $this->fill($start, $headers, '');
                return strlen($data);
            }
            $body = substr($body, 0, $length);
            $used += $length;
        }
        $this->data = substr($this->data, 0, $used);
        if (!$this->fill($start, $headers, $body)) {
            $this->failed = true;
            return false;
        }
        $this->completed = true;
        return $used - $had;
    }

    /** The content and the length of a chunked body; null: it is not whole. */
    private static function unchunk(string $text): ?array
    {
        $content = '';
        $at = 0;
        while (preg_match('/\G([0-9a-f]{1,8})[^\r\n]*\r\n/i', $text, $found, 0, $at)) {
            $size = (int) hexdec($found[1]);
            $at += strlen($found[0]);
            if ($size === 0) {
                return preg_match('/\G(?:[^\r\n]+\r\n)*\r\n/', $text, $found, 0, $at) ? [$content, $at + strlen($found[0])] : null;
            }
            if (strlen($text) < $at + $size + 2) {
                return null;
            }
            $content .= substr($text, $at, $size);
            $at += $size + 2;
        }
        return null;
    }

    /** @param array<string, string|list<string>> $headers */
    public function fill(string $startLine, array $headers, string $content): bool
    {
        if (!preg_match('~^([!#$%&\'*+.^_`|\~0-9A-Za-z-]+) (\S+) (HTTP/1\.[01])$~', $startLine, $found)) {
            return false;
        }
        [$path, $query] = explode('?', $found[2], 2) + [1 => null];
        $this->server = ['request_method' => $found[1], 'request_uri' => $path, 'path_info' => rawurldecode($path), 'request_time' => time(), 'request_time_float' => microtime(true), 'server_protocol' => $found[3]];
        if ($query !== null) {
            $this->server['query_string'] = $query;
        }
        $this->header = array_map(static fn (string|array $value): string => is_array($value) ? implode(', ', $value) : $value, $headers);
        $this->get = parsed($query);
        $this->cookie = $this->options['parse_cookie'] ?? true ? cookies(implode('; ', (array) ($headers['cookie'] ?? ''))) : null;
        $this->content = $content;
        $type = $this->header['content-type'] ?? '';
        if (($this->options['parse_body'] ?? true) && stripos($type, 'application/x-www-form-urlencoded') === 0) {
            $this->post = parsed($content);
        } elseif (($this->options['parse_files'] ?? true) && stripos($type, 'multipart/form-data') === 0) {
            [$this->post, $this->files, $this->tmpfiles] = parts($type, $content, -1);
        }
        return $this->completed = true;
    }

    public function rawContent(): string|false
    {
        return $this->content;
    }

    public function getContent(): string|false
    {
        return $this->content;
    }

    public function getData(): string|false
    {
        return $this->data !== '' ? $this->data : parent::getData();
    }

    public function isCompleted(): bool
    {
        return $this->completed;
    }

    public function materialise(): void
    {
    }
}

/** @internal a response that is written to a socket (RFC 9112) */
final class SocketResponse extends Response
{
    private bool $isChunked = false;

    private bool $isOver = false;

    private bool $isDetached = false;

    public bool $keepsAlive;

    public ?WebSocketPeer $peer = null;

    private array $setting = [];

    private ?Request $request = null;

    public static function to(Socket $socket, Request $request, array $setting, bool $keepsAlive): self
    {
        $one = new self();
        $one->exchange = -1;
        $one->fd = $socket->fd;
        $one->socket = $socket;
        $one->request = $request;
        $one->setting = $setting;
        $one->keepsAlive = $keepsAlive;
        return $one;
    }

    public function isOver(): bool
    {
        return $this->isOver || $this->isDetached || $this->peer !== null;
    }

    public function write(string $content): bool
    {
        if ($content === '') {
            return warn('Swoole\Http\Response::write(): the data sent must not be empty');
        }
        if (!$this->isWritable() || !$this->hasHead && !$this->begin(null)) {
            return false;
        }
        return $this->send($this->isChunked ? dechex(strlen($content)) . "\r\n$content\r\n" : $content);
    }

    public function end(?string $content = null): bool
    {
        if (!$this->isWritable()) {
            return false;
        }
        $content = (string) $content;
        if ($this->hasHead) {
            $this->isOver = true;
            $text = !$this->isChunked ? $content : ($content === '' ? '' : dechex(strlen($content)) . "\r\n$content\r\n") . "0\r\n" . $this->trailerSection();
            return $text === '' || $this->send($text);
        }
        return $this->begin($content);
    }

    /** RFC 9112 7.1.2. */
    private function trailerSection(): string
    {
        return implode("\r\n", [...$this->trailerLines(), '', '']);
    }

    /** Sends the head; with a content the whole response. */
    private function begin(?string $content): bool
    {
        $isBodyless = $this->status < 200 || $this->status === 204 || $this->status === 304;
        $coding = $content === null || $content === '' || $isBodyless ? null : $this->coding($content);
        if ($coding !== null) {
            $content = gzencode($content, (int) ($this->setting['http_compression_level'] ?? 1), $coding === 'gzip' ? ZLIB_ENCODING_GZIP : ZLIB_ENCODING_DEFLATE);
        }
        $lines = array_filter($this->lines(), static fn (string $line): bool => preg_match('/^(?:connection|transfer-encoding):/i', $line) === 0);
        $length = array_filter($lines, static fn (string $line): bool => stripos($line, 'content-length:') === 0);
        if ($coding !== null) {
            array_push($lines, "Content-Encoding: $coding", 'Vary: Accept-Encoding');
        }
        if ($content !== null && !$isBodyless && ($length === [] || $coding !== null)) {
            $lines = array_diff($lines, $length);
            $lines[] = 'Content-Length: ' . strlen($content);
        } elseif ($content === null && $length === [] && !$isBodyless) {
            $this->isChunked = $this->request->server['server_protocol'] === 'HTTP/1.1';
            $this->keepsAlive = $this->keepsAlive && $this->isChunked;
            $this->isChunked && $lines[] = 'Transfer-Encoding: chunked';
        }
        $names = implode("\n", $lines);
        stripos("\n$names", "\nserver:") === false && $lines[] = 'Server: Outboard';
        stripos("\n$names", "\ndate:") === false && $lines[] = 'Date: ' . gmdate('D, d M Y H:i:s') . ' GMT';
        $lines[] = 'Connection: ' . ($this->keepsAlive ? 'keep-alive' : 'close');
        $lines = array_map(static fn (string $line): string => str_replace(["\r", "\n"], '', $line), $lines);
        $this->hasHead = true;
        $this->isOver = $content !== null;
        $head = "HTTP/1.1 $this->status " . ($this->reason !== '' ? str_replace(["\r", "\n"], '', $this->reason) : \Swoole\Http\Status::getReasonPhrase($this->status)) . "\r\n" . implode("\r\n", $lines) . "\r\n\r\n";
        return $this->send($head . ($this->request->getMethod() === 'HEAD' || $isBodyless ? '' : $content));
    }

    private function coding(string $content): ?string
    {
        if (!($this->setting['http_compression'] ?? true) || isset($this->header['Content-Encoding'])) {
            return null;
        }
        if (strlen($content) < ($this->setting['http_compression_min_length'] ?? $this->setting['compression_min_length'] ?? 20)) {
            return null;
        }
        $accepted = $this->request->header['accept-encoding'] ?? '';
        return stripos($accepted, 'gzip') !== false ? 'gzip' : (stripos($accepted, 'deflate') !== false ? 'deflate' : null);
    }

    public function isWritable(): bool
    {
        return !$this->isOver && !$this->isDetached && $this->peer === null && !$this->socket->isClosed();
    }

    public function detach(): bool
    {
        return $this->isDetached = true;
    }

    /** Whether the program has taken the connection. */
    public function leavesSocket(): bool
    {
        return $this->isDetached;
    }

    public function close(): bool
    {
        $this->isOver = true;
        $this->keepsAlive = false;
        return $this->socket->close();
    }

    /** Becomes a WebSocket connection (RFC 6455, 4.2). */
    public function upgrade(): bool
    {
        $header = $this->request->header;
        if (!isset($header['sec-websocket-key']) || stripos($header['upgrade'] ?? '', 'websocket') === false) {
            $this->status(\Swoole\Http\Status::BAD_REQUEST);
            $this->end();
            return false;
        }
        $isCompressed = !empty($this->setting['websocket_compression']) && str_contains($header['sec-websocket-extensions'] ?? '', 'permessage-deflate');
        $text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " . WebSocketPeer::acceptFor($header['sec-websocket-key'])
            . "\r\nSec-WebSocket-Version: 13\r\n" . ($isCompressed ? "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n" : '');
        foreach (array_filter($this->lines(), static fn (string $line): bool => stripos($line, 'content-type:') !== 0) as $line) {
            $text .= str_replace(["\r", "\n"], '', $line) . "\r\n";
        }
        $this->hasHead = true;
        if (!$this->send("$text\r\n")) {
            return false;
        }
        $this->peer = new WebSocketPeer($this->socket, false, ['websocket_compression' => $isCompressed] + $this->setting);
        return true;
    }

    public function push(mixed $data, int $opcode = WEBSOCKET_OPCODE_TEXT, int $flags = SWOOLE_WEBSOCKET_FLAG_FIN): bool
    {
        return $this->peer !== null && $this->peer->send($data, $opcode, $flags);
    }

    public function recv(float $timeout = 0): mixed
    {
        return $this->peer?->receive($timeout !== 0.0 ? $timeout : -1.0) ?? false;
    }

    public function ping(string $data = ''): bool
    {
        return $this->push($data, WEBSOCKET_OPCODE_PING);
    }

    public function disconnect(int $code = SWOOLE_WEBSOCKET_CLOSE_NORMAL, string $reason = ''): bool
    {
        return $this->push(pack('n', $code) . substr($reason, 0, 123), WEBSOCKET_OPCODE_CLOSE) && $this->socket->shutdown(1);
    }

    private function send(string $text): bool
    {
        return $this->socket->sendAll($text) === strlen($text);
    }
}

namespace Swoole\Coroutine\Http;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;
use Swoole\Coroutine\Socket;

/** A server of HTTP/1.1 whose connections are coroutines of this process; the gateway is not involved. */
final class Server
{
    public int $fd = -1;

    public string $host = '';

    public int $port = -1;

    public bool $ssl = false;

    public ?array $settings = null;

    public int $errCode = 0;

    public string $errMsg = '';

    private Socket $socket;

    private bool $runs = false;

    /** @var array<string, callable> by path, the longest first */
    private array $handlers = [];

    public function __construct(string $host, int $port = 0, bool $ssl = false, bool $reuse_port = false)
    {
        $isPath = str_starts_with($host, 'unix:/');
        $domain = $isPath ? AF_UNIX : (str_contains($host, ':') ? AF_INET6 : AF_INET);
        $this->socket = new Socket($domain, SOCK_STREAM, 0);
        $reuse_port && $this->socket->setOption(SOL_SOCKET, SO_REUSEPORT, 1);
        if (!$this->socket->bind($isPath ? '/' . ltrim(substr($host, 5), '/') : $host, $port) || !$this->socket->listen()) {
            throw new \Swoole\Exception("listen on $host:$port failed: {$this->socket->errMsg}", $this->socket->errCode);
        }
        $this->host = $host;
        $this->port = $isPath ? 0 : $this->socket->getsockname()['port'];
        $this->fd = $this->socket->fd;
        $this->ssl = $ssl;
    }

    public function __destruct()
    {
    }

    public function set(array $settings): bool
    {
        $this->settings = $settings + ($this->settings ?? []);
        $this->socket->setProtocol($settings);
        return true;
    }

    public function handle(string $pattern, callable $callback): bool
    {
        $this->handlers[$pattern] = $callback;
        uksort($this->handlers, static fn (string $one, string $other): int => strlen($other) <=> strlen($one));
        return true;
    }

    public function start(): bool
    {
        $this->runs = true;
        while ($this->runs) {
            $connection = $this->socket->accept(-1);
            if ($connection !== false) {
                Coroutine::create(fn () => $this->serve($connection));
            } elseif ($this->runs && in_array($this->socket->errCode, [SOCKET_EMFILE, SOCKET_ENFILE], true)) {
                Coroutine::sleep(1);
            } elseif ($this->socket->errCode !== SOCKET_ETIMEDOUT) {
                $this->errCode = $this->runs ? $this->socket->errCode : SOCKET_ECANCELED;
                $this->errMsg = Engine\error_text($this->errCode);
                break;
            }
        }
        return true;
    }

    public function shutdown(): void
    {
        $this->runs = false;
        // The listener stays for another start(), until this object goes.
        $this->socket->cancel();
    }

    private function serve(Socket $connection): void
    {
        if ($this->ssl && !$connection->sslHandshake()) {
            $connection->close();
            return;
        }
        $limit = (int) ($this->settings['package_max_length'] ?? 2097152);
        do {
            $message = new Engine\HttpMessage($connection, $limit, (float) ($this->settings['http_read_timeout'] ?? -1));
            $request = new Engine\ParsedRequest($this->settings ?? []);
            if (!$message->readHead()) {
                $message->errCode === SWOOLE_ERROR_HTTP_INVALID_PROTOCOL && $this->refuse($connection, \Swoole\Http\Status::BAD_REQUEST);
                break;
            }
            if (stripos(implode(',', (array) ($message->headers['expect'] ?? '')), '100-continue') !== false) {
                $connection->sendAll("HTTP/1.1 100 Continue\r\n\r\n");
            }
            if (!$message->readBody(false) || !$request->fill($message->startLine, $message->headers, $message->body)) {
                $isTooLarge = $message->errCode === SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE;
                $this->refuse($connection, $isTooLarge ? \Swoole\Http\Status::REQUEST_ENTITY_TOO_LARGE : \Swoole\Http\Status::BAD_REQUEST);
                break;
            }
            $response = $this->answer($connection, $request);
        } while ($response->keepsAlive && $this->runs && !$connection->isClosed());
        if (!isset($response) || !$response->leavesSocket()) {
            $connection->close();
        }
    }

    private function answer(Socket $connection, Engine\ParsedRequest $request): Engine\SocketResponse
    {
        $peer = $connection->getpeername() ?: ['address' => '', 'port' => 0];
        $request->fd = $connection->fd;
        $request->server += ['server_port' => $this->port, 'remote_port' => $peer['port'], 'remote_addr' => $peer['address'], 'server_addr' => $connection->getsockname()['address'] ?? '', 'master_time' => time()];
        $wanted = strtolower($request->header['connection'] ?? '');
        $keepsAlive = $request->server['server_protocol'] === 'HTTP/1.1' ? !str_contains($wanted, 'close') : str_contains($wanted, 'keep-alive');
        $response = Engine\SocketResponse::to($connection, $request, $this->settings ?? [], $keepsAlive);
        $handler = $this->handlerOf($request->server['request_uri']);
        if ($handler === null) {
            $response->status(\Swoole\Http\Status::NOT_FOUND);
            $response->end('<h1>404 Not Found</h1>');
            return $response;
        }
        try {
            $handler($request, $response);
        } finally {
            if (!$response->isOver()) {
                $response->end();
            }
            if ($response->peer !== null || $response->leavesSocket()) {
                $response->keepsAlive = false;
            }
        }
        return $response;
    }

    private function handlerOf(string $path): ?callable
    {
        foreach ($this->handlers as $pattern => $handler) {
            if (strncasecmp($path, (string) $pattern, strlen((string) $pattern)) === 0) {
                return $handler;
            }
        }
        return null;
    }

    private function refuse(Socket $connection, int $status): void
    {
        $reason = \Swoole\Http\Status::getReasonPhrase($status);
        $connection->sendAll("HTTP/1.1 $status $reason\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}
