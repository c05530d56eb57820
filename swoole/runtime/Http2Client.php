<?php

namespace Swoole\Http2;

/** A request of Coroutine\Http2\Client. */
class Request
{
    public string $path = '/';

    public string $method = 'GET';

    public ?array $headers = null;

    public ?array $cookies = null;

    public mixed $data = '';

    public bool $pipeline = false;

    public bool $usePipelineRead = false;
}

/** A response of Coroutine\Http2\Client; a piece of one with read(). */
class Response
{
    public int $streamId = 0;

    public int $errCode = 0;

    public int $statusCode = 0;

    public bool $pipeline = false;

    public ?array $headers = null;

    public ?array $set_cookie_headers = null;

    public ?array $cookies = null;

    public ?string $data = null;
}

namespace Swoole\Coroutine\Http2;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine\Socket;
use Swoole\Http2\Request;
use Swoole\Http2\Response;

/** A client of HTTP/2 (RFC 9113) on a Coroutine\Socket; streams are read in the order of their ends. */
class Client
{
    private const WINDOW = 65535;

    private const FRAME_LIMIT = 16384;

    private const END_STREAM = 1;

    private const END_HEADERS = 4;

    private const PADDED = 8;

    private const WITH_PRIORITY = 32;

    public int $errCode = 0;

    public string $errMsg = '';

    public int $sock = -1;

    public int $type = 0;

    public ?array $setting = null;

    public bool $connected = false;

    public string $host = '';

    public int $port = 0;

    public bool $ssl = false;

    public int $serverLastStreamId = 0;

    private ?Socket $socket = null;

    private Engine\HeaderBlocks $blocks;

    private int $lastStream = 0;

    private int $window = self::WINDOW;

    private int $peerWindow = self::WINDOW;

    private int $peerFrame = self::FRAME_LIMIT;

    private int $peerStreams = 100;

    /** @var array<int, array{response: Response, window: int, piecemeal: bool, isOpen: bool}> */
    private array $streams = [];

    /** @var array{int, string, bool}|null stream, fragment and end of a block that goes on */
    private ?array $block = null;

    public function __construct(string $host, int $port = 80, bool $open_ssl = false)
    {
        if ($host === '') {
            throw new Client\Exception('the host is empty', SWOOLE_ERROR_INVALID_PARAMS);
        }
        $this->host = $host;
        $this->port = $port;
        $this->ssl = $open_ssl;
    }

    public function __destruct()
    {
    }

    public function set(array $settings): bool
    {
        $this->setting = $settings + ($this->setting ?? []);
        return true;
    }

    public function connect(): bool
    {
        if ($this->connected) {
            return false;
        }
        $setting = $this->setting ?? [];
        $socket = new Socket(filter_var($this->host, FILTER_VALIDATE_IP, FILTER_FLAG_IPV6) ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
        $socket->setProtocol($setting + ['ssl_alpn' => 'h2'] + (filter_var($this->host, FILTER_VALIDATE_IP) ? [] : ['ssl_host_name' => $this->host]));
        $seconds = Engine\setting_timeout($setting, 'connect_timeout', 'socket_connect_timeout', 2.0);
        if (!Engine\Proxy::connect($socket, $setting, $this->host, $this->port, $seconds) || $this->ssl && !$socket->sslHandshake()) {
            $code = $socket->errCode;
            $socket->close();
            return $this->fail($code);
        }
        $this->socket = $socket;
        $this->sock = $socket->fd;
        $this->connected = true;
        $this->blocks = new Engine\HeaderBlocks();
        $this->lastStream = 0;
        $this->streams = [];
        $this->block = null;
        $this->window = $this->peerWindow = self::WINDOW;
        // No pushes, and our window for each stream.
        $settings = pack('nN', 2, 0) . pack('nN', 4, self::WINDOW);
        return $this->transmit("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . self::frame(SWOOLE_HTTP2_TYPE_SETTINGS, 0, 0, $settings));
    }

    public function stats(string $key = ''): array|int
    {
        $stats = [
            'current_stream_id' => $this->lastStream, 'last_stream_id' => $this->serverLastStreamId, 'active_stream_num' => count($this->streams),
            'local_settings' => ['header_table_size' => 4096, 'init_window_size' => self::WINDOW, 'max_concurrent_streams' => 128, 'max_frame_size' => self::FRAME_LIMIT, 'max_header_list_size' => 4096],
            'remote_settings' => ['header_table_size' => 4096, 'init_window_size' => $this->peerWindow, 'max_concurrent_streams' => $this->peerStreams, 'max_frame_size' => $this->peerFrame],
        ];
        return $key === '' ? $stats : ($stats[$key] ?? 0);
    }

    public function isStreamExist(int $stream_id): bool
    {
        return $stream_id === 0 ? $this->connected : isset($this->streams[$stream_id]);
    }

    /** The number of the stream, for recv() or, with $request->pipeline, for write(). */
    public function send(Request $request): int|false
    {
        if (!$this->isUsable()) {
            return false;
        }
        $headers = [[':method', $request->method], [':path', $request->path === '' ? '/' : $request->path], [':scheme', $this->ssl ? 'https' : 'http']];
        $own = [];
        foreach ($request->headers ?? [] as $name => $value) {
            $own[strtolower((string) $name)] = str_replace(["\r", "\n"], '', (string) $value);
        }
        $is_default = $this->port === ($this->ssl ? 443 : 80);
        $headers[] = [':authority', $own['host'] ?? $this->host . ($is_default ? '' : ":$this->port")];
        // Of connections, which HTTP/2 has not (RFC 9113, 8.2.2).
        unset($own['host'], $own['connection'], $own['keep-alive'], $own['transfer-encoding'], $own['upgrade'], $own['content-length']);
        $data = $request->data;
        if (is_array($data)) {
            $data = http_build_query($data);
            $own['content-type'] ??= 'application/x-www-form-urlencoded';
        }
        $data = (string) $data;
        if ($request->cookies) {
            $pairs = [];
            foreach ($request->cookies as $name => $value) {
                $pairs[] = "$name=" . rawurlencode((string) $value);
            }
            $own['cookie'] = implode('; ', $pairs);
        }
        if ($data !== '' && !$request->pipeline) {
            $own['content-length'] = (string) strlen($data);
        }
        foreach ($own as $name => $value) {
            $headers[] = [(string) $name, $value];
        }
        $this->lastStream += $this->lastStream === 0 ? 1 : 2;
        $stream = $this->lastStream;
        $response = new Response();
        $response->streamId = $stream;
        $response->data = '';
        $this->streams[$stream] = ['response' => $response, 'window' => $this->peerWindow, 'piecemeal' => $request->usePipelineRead, 'isOpen' => $request->pipeline];
        $ends = $data === '' && !$request->pipeline;
        if (!$this->sendBlock($stream, $this->blocks->encode($headers), $ends) || !$ends && $data !== '' && !$this->sendData($stream, $data, !$request->pipeline)) {
            return false;
        }
        return $stream;
    }

    private function sendBlock(int $stream, string $block, bool $ends): bool
    {
        $pieces = str_split($block, $this->peerFrame);
        $text = '';
        foreach ($pieces as $number => $piece) {
            $flags = ($number === 0 && $ends ? self::END_STREAM : 0) | ($number === count($pieces) - 1 ? self::END_HEADERS : 0);
            $text .= self::frame($number === 0 ? SWOOLE_HTTP2_TYPE_HEADERS : SWOOLE_HTTP2_TYPE_CONTINUATION, $flags, $stream, $piece);
        }
        return $this->transmit($text);
    }

    /** A piece of the body of a request with $pipeline. */
    public function write(int $stream_id, mixed $data, bool $end_stream = false): bool
    {
        if (!$this->isUsable()) {
            return false;
        }
        if (!isset($this->streams[$stream_id])) {
            return $this->fail(SOCKET_EINVAL);
        }
        if (!$this->streams[$stream_id]['isOpen']) {
            return $this->fail(SWOOLE_ERROR_HTTP2_STREAM_NOT_FOUND);
        }
        $this->streams[$stream_id]['isOpen'] = !$end_stream;
        return $this->sendData($stream_id, is_array($data) ? http_build_query($data) : (string) $data, $end_stream);
    }

    /** Waits for the peer's windows (RFC 9113, 5.2). */
    private function sendData(int $stream, string $data, bool $ends): bool
    {
        do {
            $most = min($this->window, $this->streams[$stream]['window'] ?? 0, $this->peerFrame);
            if ($most <= 0 && $data !== '') {
                if (!isset($this->streams[$stream]) || $this->readFrame($this->timeout()) === false) {
                    return false;
                }
                continue;
            }
            $piece = substr($data, 0, $most);
            $data = substr($data, strlen($piece));
            $this->window -= strlen($piece);
            $this->streams[$stream]['window'] -= strlen($piece);
            if (!$this->transmit(self::frame(SWOOLE_HTTP2_TYPE_DATA, $data === '' && $ends ? self::END_STREAM : 0, $stream, $piece))) {
                return false;
            }
        } while ($data !== '');
        return true;
    }

    /** The next response that is whole. */
    public function recv(float $timeout = 0): Response|false
    {
        return $this->next($timeout !== 0.0 ? $timeout : $this->timeout(), false);
    }

    /** The next response or piece of one, of requests with $usePipelineRead. */
    public function read(float $timeout = 0): Response|false
    {
        return $this->next($timeout !== 0.0 ? $timeout : $this->timeout(), true);
    }

    private function next(float $timeout, bool $isPiecemeal): Response|false
    {
        $until = $timeout > 0 ? microtime(true) + $timeout : INF;
        while ($this->isUsable()) {
            $response = $this->readFrame($until === INF ? -1.0 : max($until - microtime(true), 0.000001), $isPiecemeal);
            if ($response !== true) {
                return $response;
            }
        }
        return false;
    }

    public function ping(): bool
    {
        return $this->isUsable() && $this->transmit(self::frame(SWOOLE_HTTP2_TYPE_PING, 0, 0, random_bytes(8)));
    }

    public function goaway(int $error_code = SWOOLE_HTTP2_ERROR_NO_ERROR, string $debug_data = ''): bool
    {
        return $this->isUsable() && $this->transmit(self::frame(SWOOLE_HTTP2_TYPE_GOAWAY, 0, 0, pack('NN', 0, $error_code) . $debug_data));
    }

    public function close(): bool
    {
        $was = $this->socket !== null;
        $this->socket?->close();
        $this->socket = null;
        $this->connected = false;
        $this->sock = -1;
        $this->streams = [];
        return $was;
    }

    /** Handles one frame: true, or the response that it completes; false: there is none, and why is in errCode. */
    private function readFrame(float $timeout, bool $isPiecemeal = false): Response|bool
    {
        $head = $this->socket->recvAll(9, $timeout);
        if (!is_string($head) || strlen($head) < 9) {
            if ($head === false && $this->socket->errCode === SOCKET_ETIMEDOUT) {
                return $this->fail(SOCKET_ETIMEDOUT);
            }
            return $this->broken($this->socket->errCode ?: SOCKET_ECONNRESET);
        }
        ['high' => $high, 'low' => $low, 'type' => $type, 'flags' => $flags, 'stream' => $stream] = unpack('Chigh/nlow/Ctype/Cflags/Nstream', $head);
        $stream &= 0x7fffffff;
        $length = $high << 16 | $low;
        $payload = $length === 0 ? '' : ($length > self::FRAME_LIMIT ? false : $this->socket->recvAll($length, $timeout));
        if (!is_string($payload) || strlen($payload) < $length) {
            return $this->broken(SWOOLE_ERROR_HTTP2_INTERNAL_ERROR);
        }
        if ($this->block !== null && ($type !== SWOOLE_HTTP2_TYPE_CONTINUATION || $stream !== $this->block[0])) {
            return $this->broken(SWOOLE_ERROR_PROTOCOL_ERROR);
        }
        return match ($type) {
            SWOOLE_HTTP2_TYPE_DATA => $this->takeData($stream, $flags, $payload, $isPiecemeal),
            SWOOLE_HTTP2_TYPE_HEADERS => $this->takeBlock($stream, $flags, self::unpad($payload, $flags), ($flags & self::END_STREAM) !== 0, $isPiecemeal),
            SWOOLE_HTTP2_TYPE_CONTINUATION => $this->block === null ? $this->broken(SWOOLE_ERROR_PROTOCOL_ERROR) : $this->takeBlock($stream, $flags, $this->block[1] . $payload, $this->block[2], $isPiecemeal),
            SWOOLE_HTTP2_TYPE_RST_STREAM => $this->takeReset($stream, $payload),
            SWOOLE_HTTP2_TYPE_SETTINGS => $flags & 1 ? true : $this->takeSettings($payload),
            SWOOLE_HTTP2_TYPE_PING => $flags & 1 ? true : $this->transmit(self::frame(SWOOLE_HTTP2_TYPE_PING, 1, 0, $payload)),
            SWOOLE_HTTP2_TYPE_GOAWAY => $this->takeGoaway($payload),
            SWOOLE_HTTP2_TYPE_WINDOW_UPDATE => $this->takeWindow($stream, $payload),
            default => true,
        };
    }

    private static function unpad(string $payload, int $flags): string
    {
        $padding = $flags & self::PADDED ? ord($payload[0] ?? "\0") : 0;
        $from = ($flags & self::PADDED ? 1 : 0) + ($flags & self::WITH_PRIORITY ? 5 : 0);
        return substr($payload, $from, max(0, strlen($payload) - $from - $padding));
    }

    private function takeData(int $stream, int $flags, string $payload, bool $isPiecemeal): Response|bool
    {
        if ($payload !== '') {
            $more = pack('N', strlen($payload));
            $this->transmit(self::frame(SWOOLE_HTTP2_TYPE_WINDOW_UPDATE, 0, 0, $more) . ($flags & self::END_STREAM ? '' : self::frame(SWOOLE_HTTP2_TYPE_WINDOW_UPDATE, 0, $stream, $more)));
        }
        if (!isset($this->streams[$stream])) {
            return true;
        }
        $response = $this->streams[$stream]['response'];
        $response->data .= self::unpad($payload, $flags & self::PADDED);
        if (strlen($response->data) > (int) ($this->setting['package_max_length'] ?? PHP_INT_MAX)) {
            return $this->broken(SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
        }
        return $this->deliver($stream, ($flags & self::END_STREAM) !== 0, $isPiecemeal);
    }

    private function takeBlock(int $stream, int $flags, string $block, bool $ends, bool $isPiecemeal): Response|bool
    {
        if (!($flags & self::END_HEADERS)) {
            $this->block = [$stream, $block, $ends];
            return strlen($block) < 1 << 18 || $this->broken(SWOOLE_ERROR_HTTP2_TOO_MANY_HEADERS);
        }
        $this->block = null;
        $headers = $this->blocks->decode($block);
        if ($headers === null) {
            return $this->broken(SWOOLE_ERROR_HTTP2_INTERNAL_ERROR);
        }
        if (!isset($this->streams[$stream])) {
            return true;
        }
        $response = $this->streams[$stream]['response'];
        foreach ($headers as [$name, $value]) {
            if ($name === ':status') {
                $response->statusCode = (int) $value;
            } elseif ($name === 'set-cookie') {
                $response->set_cookie_headers[] = $value;
                [$cookie, $content] = explode('=', explode(';', $value, 2)[0], 2) + [1 => ''];
                $response->cookies[trim($cookie)] = urldecode(trim($content));
                $response->headers[$name] = isset($response->headers[$name]) ? array_merge((array) $response->headers[$name], [$value]) : $value;
            } else {
                $response->headers[$name] = $value;
            }
        }
        // 1xx comes before the response.
        return $response->statusCode < 200 ? true : $this->deliver($stream, $ends, $isPiecemeal);
    }

    private function deliver(int $stream, bool $ends, bool $isPiecemeal): Response|bool
    {
        if (!$ends && !($isPiecemeal && $this->streams[$stream]['piecemeal'])) {
            return true;
        }
        $response = $this->streams[$stream]['response'];
        if ($ends) {
            unset($this->streams[$stream]);
        } else {
            $next = clone $response;
            $next->data = '';
            $this->streams[$stream]['response'] = $next;
        }
        $response->pipeline = !$ends;
        $coding = $response->headers['content-encoding'] ?? '';
        if ($ends && is_string($coding) && in_array($coding, ['gzip', 'deflate'], true) && $response->data !== '') {
            $plain = @zlib_decode($response->data);
            $response->data = $plain === false ? $response->data : $plain;
        }
        return $response;
    }

    private function takeReset(int $stream, string $payload): Response|bool
    {
        if (!isset($this->streams[$stream])) {
            return true;
        }
        $response = $this->streams[$stream]['response'];
        unset($this->streams[$stream]);
        $response->errCode = unpack('N', str_pad($payload, 4, "\0"))[1];
        $response->statusCode = -3;
        return $response;
    }

    private function takeSettings(string $payload): bool
    {
        foreach (str_split($payload, 6) as $one) {
            if (strlen($one) < 6) {
                continue;
            }
            ['name' => $name, 'value' => $value] = unpack('nname/Nvalue', $one);
            if ($name === 3) {
                $this->peerStreams = $value;
            } elseif ($name === 4) {
                foreach ($this->streams as $id => $stream) {
                    $this->streams[$id]['window'] += $value - $this->peerWindow;
                }
                $this->peerWindow = $value;
            } elseif ($name === 5) {
                $this->peerFrame = max(self::FRAME_LIMIT, min($value, 1 << 24));
            }
        }
        return $this->transmit(self::frame(SWOOLE_HTTP2_TYPE_SETTINGS, 1, 0, ''));
    }

    private function takeGoaway(string $payload): bool
    {
        ['last' => $last, 'code' => $code] = unpack('Nlast/Ncode', str_pad($payload, 8, "\0"));
        $this->serverLastStreamId = $last & 0x7fffffff;
        $this->close();
        $this->errCode = $code;
        $this->errMsg = substr($payload, 8);
        return false;
    }

    private function takeWindow(int $stream, string $payload): bool
    {
        $more = unpack('N', str_pad($payload, 4, "\0"))[1] & 0x7fffffff;
        if ($stream === 0) {
            $this->window += $more;
        } elseif (isset($this->streams[$stream])) {
            $this->streams[$stream]['window'] += $more;
        }
        return true;
    }

    private static function frame(int $type, int $flags, int $stream, string $payload): string
    {
        return substr(pack('N', strlen($payload)), 1) . pack('CCN', $type, $flags, $stream) . $payload;
    }

    private function transmit(string $text): bool
    {
        return $this->socket->sendAll($text) === strlen($text) || $this->broken($this->socket->errCode);
    }

    private function timeout(): float
    {
        return Engine\setting_timeout($this->setting, 'read_timeout', 'socket_read_timeout', -1.0);
    }

    private function isUsable(): bool
    {
        return $this->connected || $this->fail(SWOOLE_ERROR_CLIENT_NO_CONNECTION);
    }

    private function broken(int $code): false
    {
        $this->close();
        return $this->fail($code);
    }

    private function fail(int $code): false
    {
        $this->errCode = $code;
        $this->errMsg = Engine\error_text($code);
        Engine\LastError::set($code);
        return false;
    }
}

namespace Swoole\Coroutine\Http2\Client;

class Exception extends \Swoole\Exception
{
}
