<?php

namespace Swoole\Coroutine;

/** A TCP, UDP or Unix connection, by way of PHP's streams. */
class Client
{
    public const MSG_OOB = 1;

    public const MSG_PEEK = 2;

    public const MSG_DONTWAIT = 64;

    public const MSG_WAITALL = 256;

    public $errCode = 0;

    public $errMsg = '';

    public $fd = -1;

    public $type = 1;

    public $setting = null;

    public $connected = false;

    private mixed $stream = null;

    private string $read = '';

    public function __construct(int $type = SWOOLE_SOCK_TCP)
    {
        $this->type = $type;
    }

    public function set(array $settings): bool
    {
        $this->setting = $settings + ($this->setting ?? []);
        return true;
    }

    public function connect(string $host, int $port = 0, float $timeout = 0, int $sock_flag = 0): bool
    {
        if ($this->connected) {
            return false;
        }
        $address = match ($this->type & ~(SWOOLE_SSL | SWOOLE_SYNC | SWOOLE_ASYNC | SWOOLE_KEEP)) {
            SWOOLE_SOCK_UDP => "udp://$host:$port",
            SWOOLE_SOCK_UDP6 => "udp://[$host]:$port",
            SWOOLE_SOCK_TCP6 => "tcp://[$host]:$port",
            SWOOLE_SOCK_UNIX_STREAM => "unix://$host",
            SWOOLE_SOCK_UNIX_DGRAM => "udg://$host",
            default => "tcp://$host:$port",
        };
        $ssl = ['verify_peer' => !empty($this->setting['ssl_verify_peer']), 'verify_peer_name' => !empty($this->setting['ssl_verify_peer']), 'allow_self_signed' => true];
        foreach (['ssl_host_name' => 'peer_name', 'ssl_cafile' => 'cafile', 'ssl_cert_file' => 'local_cert', 'ssl_key_file' => 'local_pk'] as $name => $option) {
            if (isset($this->setting[$name])) {
                $ssl[$option] = $this->setting[$name];
            }
        }
        $address = $this->type & SWOOLE_SSL ? 'ssl' . substr($address, 3) : $address;
        $stream = @stream_socket_client($address, $code, $message, $this->seconds($timeout, 'connect_timeout', 2.0), STREAM_CLIENT_CONNECT, stream_context_create(['ssl' => $ssl]));
        if ($stream === false) {
            return $this->fail($code ?: SOCKET_ETIMEDOUT, $message);
        }
        $this->stream = $stream;
        $this->fd = \Outboard\Engine\Swoole\descriptor($stream);
        stream_set_read_buffer($stream, 0);
        return $this->connected = true;
    }

    public function send(string $data, float $timeout = 0): int|false
    {
        if ($this->stream === null) {
            return $this->fail(SOCKET_ENOTCONN, 'Transport endpoint is not connected');
        }
        $sent = 0;
        while ($sent < strlen($data)) {
            $now = @fwrite($this->stream, $sent === 0 ? $data : substr($data, $sent));
            if ($now === false || $now === 0) {
                return $this->fail(SOCKET_EPIPE, 'Broken pipe');
            }
            $sent += $now;
        }
        return $sent;
    }

    public function sendto(string $address, int $port, string $data): bool
    {
        if ($this->stream === null) {
            $this->stream = stream_socket_client("udp://$address:$port") ?: null;
        }
        return $this->stream !== null && stream_socket_sendto($this->stream, $data, 0, "$address:$port") === strlen($data);
    }

    /** What has come, or, with a protocol in set(), the next whole message; '' at the peer's end. */
    public function recv(float $timeout = 0): string|false
    {
        $until = $this->until($timeout);
        while (($message = $this->message()) === null) {
            $piece = $this->receive(65536, $until);
            if ($piece === false || $piece === '') {
                return $piece;
            }
            $this->read .= $piece;
        }
        return $message;
    }

    public function recvfrom(int $length, mixed &$address, mixed &$port = 0): string|false
    {
        $data = stream_socket_recvfrom($this->stream, $length, 0, $from);
        [$address, $port] = explode(':', (string) $from) + [1 => 0];
        return $data;
    }

    public function peek(int $length = 65535): string|false
    {
        return $this->stream === null ? false : stream_socket_recvfrom($this->stream, $length, STREAM_PEEK);
    }

    public function sendfile(string $filename, int $offset = 0, int $length = 0): bool
    {
        $data = file_get_contents($filename, false, null, $offset, $length > 0 ? $length : null);
        return $data !== false && $this->send($data) === strlen($data);
    }

    public function enableSSL(): bool
    {
        return $this->stream !== null && stream_socket_enable_crypto($this->stream, true, STREAM_CRYPTO_METHOD_TLS_CLIENT) === true;
    }

    public function getpeername(): array|false
    {
        return self::address($this->stream, true);
    }

    public function getsockname(): array|false
    {
        return self::address($this->stream, false);
    }

    public function isConnected(): bool
    {
        return $this->connected;
    }

    public function exportSocket(): Socket|false
    {
        return $this->stream === null ? false : Socket::of($this->stream);
    }

    public function close(): bool
    {
        $was = $this->stream !== null;
        $was && fclose($this->stream);
        $this->stream = null;
        $this->fd = -1;
        $this->connected = false;
        $this->read = '';
        return $was;
    }

    /** The first whole message of what was read, or null. */
    private function message(): ?string
    {
        $options = $this->setting ?? [];
        if ($this->read === '') {
            return null;
        }
        if (!empty($options['open_eof_check']) || !empty($options['open_eof_split'])) {
            $at = strpos($this->read, $options['package_eof'] ?? "\r\n");
            $length = $at === false ? null : $at + strlen($options['package_eof'] ?? "\r\n");
        } elseif (!empty($options['open_length_check'])) {
            $length = \Outboard\Engine\Swoole\message_length($this->read, $options);
        } else {
            $length = strlen($this->read);
        }
        if ($length === null || strlen($this->read) < $length) {
            return null;
        }
        $message = substr($this->read, 0, $length);
        $this->read = substr($this->read, $length);
        return $message;
    }

    private function receive(int $length, float $until): string|false
    {
        if ($this->stream === null) {
            return $this->fail(SOCKET_ENOTCONN, 'Transport endpoint is not connected');
        }
        if ($until !== INF) {
            $left = max($until - microtime(true), 0.000001);
            stream_set_timeout($this->stream, (int) $left, (int) (($left - (int) $left) * 1e6));
        }
        $piece = fread($this->stream, $length);
        if ($piece === false || $piece === '') {
            if (stream_get_meta_data($this->stream)['timed_out']) {
                return $this->fail(SOCKET_ETIMEDOUT, 'Operation timed out');
            }
            return '';
        }
        $this->errCode = 0;
        $this->errMsg = '';
        return $piece;
    }

    private function seconds(float $timeout, string $option, float $default): float
    {
        return $timeout > 0 ? $timeout : (float) ($this->setting[$option] ?? $this->setting['timeout'] ?? $default);
    }

    private function until(float $timeout): float
    {
        $seconds = $timeout !== 0.0 ? $timeout : (float) ($this->setting['read_timeout'] ?? $this->setting['timeout'] ?? -1);
        return $seconds > 0 ? microtime(true) + $seconds : INF;
    }

    private function fail(int $code, string $message): false
    {
        $this->errCode = $code;
        $this->errMsg = $message;
        return false;
    }

    private static function address(mixed $stream, bool $peer): array|false
    {
        $name = $stream === null ? false : stream_socket_get_name($stream, $peer);
        $colon = $name === false ? false : strrpos($name, ':');
        return $colon === false ? false : ['host' => trim(substr($name, 0, $colon), '[]'), 'port' => (int) substr($name, $colon + 1)];
    }
}

class Socket
{
    public $fd = -1;

    public $domain = 0;

    public $type = 0;

    public $protocol = 0;

    public $errCode = 0;

    public $errMsg = '';

    private ?\Socket $socket = null;

    private string $read = '';

    private array $options = [];

    public function __construct(int $domain, int $type, int $protocol = 0)
    {
        $this->domain = $domain;
        $this->type = $type;
        $this->protocol = $protocol;
        $this->socket = socket_create($domain, $type, $protocol) ?: null;
        if ($this->socket === null) {
            throw new Socket\Exception(socket_strerror(socket_last_error()), socket_last_error());
        }
    }

    /** @internal */
    public static function of(mixed $stream): self|false
    {
        $socket = socket_import_stream($stream);
        return $socket === false ? false : self::around($socket);
    }

    private static function around(\Socket $socket): self
    {
        $one = (new \ReflectionClass(self::class))->newInstanceWithoutConstructor();
        $one->socket = $socket;
        return $one;
    }

    public function bind(string $address, int $port = 0): bool
    {
        socket_set_option($this->socket, SOL_SOCKET, SO_REUSEADDR, 1);
        return $this->tell(@socket_bind($this->socket, $address, $port));
    }

    public function listen(int $backlog = 512): bool
    {
        return $this->tell(@socket_listen($this->socket, $backlog));
    }

    public function accept(float $timeout = 0): self|false
    {
        // accept(2) is not replaced by the host: it is called when there is a connection.
        if (!$this->ready(SWOOLE_EVENT_READ, $timeout > 0 ? $timeout : -1.0)) {
            return false;
        }
        $socket = @socket_accept($this->socket);
        return $this->tell($socket !== false) ? self::around($socket) : false;
    }

    public function connect(string $host, int $port = 0, float $timeout = 0): bool
    {
        $host = $this->domain === AF_INET && !filter_var($host, FILTER_VALIDATE_IP) ? gethostbyname($host) : $host;
        return $this->tell(@socket_connect($this->socket, $host, $this->domain === AF_UNIX ? null : $port));
    }

    public function recv(int $length = 65536, float $timeout = 0): string|false
    {
        if ($this->read !== '') {
            $data = substr($this->read, 0, $length);
            $this->read = substr($this->read, strlen($data));
            return $data;
        }
        if (!$this->ready(SWOOLE_EVENT_READ, $timeout)) {
            return false;
        }
        $received = @socket_recv($this->socket, $data, $length, 0);
        return $this->tell($received !== false) ? (string) $data : false;
    }

    public function recvAll(int $length = 65536, float $timeout = 0): string|false
    {
        $all = '';
        while (strlen($all) < $length) {
            $piece = $this->recv($length - strlen($all), $timeout);
            if ($piece === false || $piece === '') {
                return $all === '' ? $piece : $all;
            }
            $all .= $piece;
        }
        return $all;
    }

    public function recvLine(int $length = 65536, float $timeout = 0): string|false
    {
        while (($at = strpos($this->read, "\n")) === false && strlen($this->read) < $length) {
            $read = $this->read;
            $this->read = '';
            $piece = $this->recv($length, $timeout);
            $this->read = $read . $piece;
            if ($piece === false || $piece === '') {
                break;
            }
        }
        $line = substr($this->read, 0, min($at === false ? $length : $at + 1, $length));
        $this->read = substr($this->read, strlen($line));
        return $line;
    }

    public function recvPacket(float $timeout = 0): string|false
    {
        while (true) {
            $length = match (true) {
                !empty($this->options['open_eof_check']) => ($at = strpos($this->read, $this->options['package_eof'] ?? "\r\n")) === false ? null : $at + strlen($this->options['package_eof'] ?? "\r\n"),
                !empty($this->options['open_length_check']) => \Outboard\Engine\Swoole\message_length($this->read, $this->options),
                default => $this->read === '' ? null : strlen($this->read),
            };
            if ($length !== null && strlen($this->read) >= $length) {
                $packet = substr($this->read, 0, $length);
                $this->read = substr($this->read, $length);
                return $packet;
            }
            $read = $this->read;
            $this->read = '';
            $piece = $this->recv(65536, $timeout);
            $this->read = $read . $piece;
            if ($piece === false || $piece === '') {
                return $piece;
            }
        }
    }

    public function send(string $data, float $timeout = 0): int|false
    {
        $sent = @socket_send($this->socket, $data, strlen($data), MSG_NOSIGNAL);
        return $this->tell($sent !== false) ? $sent : false;
    }

    public function sendAll(string $data, float $timeout = 0): int|false
    {
        $all = 0;
        while ($all < strlen($data)) {
            $sent = $this->send($all === 0 ? $data : substr($data, $all), $timeout);
            if ($sent === false) {
                return $all > 0 ? $all : false;
            }
            $all += $sent;
        }
        return $all;
    }

    public function sendto(string $addr, int $port, string $data): int|false
    {
        $sent = @socket_sendto($this->socket, $data, strlen($data), 0, $addr, $port);
        return $this->tell($sent !== false) ? $sent : false;
    }

    public function recvfrom(mixed &$peername, float $timeout = 0): string|false
    {
        if (!$this->ready(SWOOLE_EVENT_READ, $timeout)) {
            return false;
        }
        $received = @socket_recvfrom($this->socket, $data, 65536, 0, $address, $port);
        $peername = ['address' => $address, 'port' => $port];
        return $this->tell($received !== false) ? $data : false;
    }

    public function setProtocol(array $settings): bool
    {
        $this->options = $settings + $this->options;
        return true;
    }

    public function setOption(int $level, int $opt_name, mixed $opt_value): bool
    {
        return socket_set_option($this->socket, $level, $opt_name, $opt_value);
    }

    public function getOption(int $level, int $opt_name): mixed
    {
        return socket_get_option($this->socket, $level, $opt_name);
    }

    public function getpeername(): array|false
    {
        return @socket_getpeername($this->socket, $address, $port) ? ['address' => $address, 'port' => $port] : false;
    }

    public function getsockname(): array|false
    {
        return @socket_getsockname($this->socket, $address, $port) ? ['address' => $address, 'port' => $port] : false;
    }

    public function checkLiveness(): bool
    {
        if ($this->socket === null) {
            return false;
        }
        $received = @socket_recv($this->socket, $data, 1, MSG_PEEK | MSG_DONTWAIT);
        return $received !== 0;
    }

    public function isClosed(): bool
    {
        return $this->socket === null;
    }

    public function shutdown(int $how = 2): bool
    {
        return $this->tell(@socket_shutdown($this->socket, $how));
    }

    public function close(): bool
    {
        $was = $this->socket !== null;
        $was && socket_close($this->socket);
        $this->socket = null;
        return $was;
    }

    private function ready(int $event, float $timeout): bool
    {
        if ($timeout === 0.0) {
            return true;
        }
        $stream = socket_export_stream($this->socket);
        if (\Outboard\Engine\Swoole\wait_descriptor($stream, $event, $timeout) === 0) {
            $this->errCode = SOCKET_ETIMEDOUT;
            $this->errMsg = socket_strerror(SOCKET_ETIMEDOUT);
            return false;
        }
        return true;
    }

    private function tell(bool $done): bool
    {
        $this->errCode = $done || $this->socket === null ? 0 : socket_last_error($this->socket);
        $this->errMsg = $this->errCode === 0 ? '' : socket_strerror($this->errCode);
        return $done;
    }
}

namespace Swoole\Coroutine\Socket;

class Exception extends \Swoole\Exception
{
}

namespace Swoole\Coroutine\Http;

/** By way of curl, whose calls wait without holding the worker. */
class Client
{
    public $errCode = 0;

    public $errMsg = '';

    public $connected = false;

    public $setting = null;

    public $requestMethod = null;

    public $requestHeaders = null;

    public $requestBody = null;

    public $uploadFiles = null;

    public $downloadFile = null;

    public $downloadOffset = 0;

    public $statusCode = 0;

    public $headers = null;

    public $set_cookie_headers = null;

    public $cookies = null;

    public $body = '';

    private ?\CurlHandle $curl = null;

    private bool $deferred = false;

    private ?\Swoole\Coroutine\Channel $result = null;

    private ?array $basic = null;

    private array $fields = [];

    public function __construct(public string $host, public int $port = 0, public bool $ssl = false)
    {
        $this->port = $port ?: ($ssl ? 443 : 80);
    }

    public function set(array $settings): bool
    {
        $this->setting = $settings + ($this->setting ?? []);
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

    public function setBasicAuth(string $username, string $password): void
    {
        $this->basic = [$username, $password];
    }

    public function setData(array|string $data): bool
    {
        $this->requestBody = $data;
        return true;
    }

    public function addFile(string $path, string $name, ?string $type = null, ?string $filename = null, int $offset = 0, int $length = 0): bool
    {
        $this->fields[$name] = $offset === 0 && $length === 0
            ? new \CURLFile($path, $type ?? \Outboard\Engine\Swoole\type_of($path), $filename ?? basename($path))
            : new \CURLStringFile((string) file_get_contents($path, false, null, $offset, $length ?: null), $filename ?? basename($path), $type ?? \Outboard\Engine\Swoole\type_of($path));
        return true;
    }

    public function addData(string $path, string $name, ?string $type = null, ?string $filename = null): bool
    {
        $this->fields[$name] = new \CURLStringFile($path, $filename ?? $name, $type ?? 'application/octet-stream');
        return true;
    }

    public function get(string $path): bool
    {
        return $this->start($this->requestMethod ?? 'GET', $path, null);
    }

    public function post(string $path, mixed $data): bool
    {
        return $this->start('POST', $path, $data);
    }

    public function execute(string $path): bool
    {
        return $this->start($this->requestMethod ?? ($this->requestBody === null && $this->fields === [] ? 'GET' : 'POST'), $path, $this->requestBody);
    }

    public function download(string $path, string $filename, int $offset = 0): bool
    {
        return $this->get($path) && file_put_contents($filename, $this->body, $offset > 0 ? FILE_APPEND : 0) !== false;
    }

    public function upgrade(string $path): bool
    {
        $this->errMsg = 'WebSocket connections are not supported';
        return false;
    }

    public function push(mixed $data, int $opcode = 1, int $flags = 1): bool
    {
        return false;
    }

    public function setDefer(bool $defer = true): bool
    {
        $this->deferred = $defer;
        return true;
    }

    public function getDefer(): bool
    {
        return $this->deferred;
    }

    public function recv(float $timeout = 0): mixed
    {
        $result = $this->result?->pop($timeout > 0 ? $timeout : -1) ?? false;
        $this->result = null;
        return $result;
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
        return $this->curl === null ? false : (string) curl_getinfo($this->curl, CURLINFO_HEADER_OUT);
    }

    public function getpeername(): array|false
    {
        return $this->curl === null ? false : ['host' => curl_getinfo($this->curl, CURLINFO_PRIMARY_IP), 'port' => curl_getinfo($this->curl, CURLINFO_PRIMARY_PORT)];
    }

    public function getsockname(): array|false
    {
        return $this->curl === null ? false : ['host' => curl_getinfo($this->curl, CURLINFO_LOCAL_IP), 'port' => curl_getinfo($this->curl, CURLINFO_LOCAL_PORT)];
    }

    public function close(): bool
    {
        $was = $this->curl !== null;
        $this->curl = null;
        $this->connected = false;
        return $was;
    }

    private function start(string $method, string $path, mixed $data): bool
    {
        if (!$this->deferred) {
            return $this->send($method, $path, $data);
        }
        $this->result = new \Swoole\Coroutine\Channel(1);
        \Swoole\Coroutine::create(fn (): bool => $this->result->push($this->send($method, $path, $data)));
        return true;
    }

    private function send(string $method, string $path, mixed $data): bool
    {
        $curl = $this->curl ??= curl_init();
        $scheme = $this->ssl ? 'https' : 'http';
        $host = str_contains($this->host, ':') ? "[$this->host]" : $this->host;
        curl_reset($curl);
        $lines = [];
        foreach ($this->requestHeaders ?? [] as $name => $value) {
            $lines[] = "$name: $value";
        }
        $headers = $received = [];
        $options = [
            CURLOPT_URL => "$scheme://$host:$this->port" . ($path === '' || $path[0] !== '/' ? "/$path" : $path),
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_NOBODY => $method === 'HEAD',
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_ENCODING => '',
            CURLINFO_HEADER_OUT => true,
            CURLOPT_TIMEOUT_MS => max(0, (int) (($this->setting['timeout'] ?? -1) * 1000)),
            CURLOPT_CONNECTTIMEOUT_MS => (int) (($this->setting['connect_timeout'] ?? 2) * 1000),
            CURLOPT_FORBID_REUSE => isset($this->setting['keep_alive']) && !$this->setting['keep_alive'],
            CURLOPT_SSL_VERIFYPEER => !empty($this->setting['ssl_verify_peer']),
            CURLOPT_SSL_VERIFYHOST => empty($this->setting['ssl_verify_peer']) ? 0 : 2,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$headers, &$received): int {
                if (str_starts_with($line, 'HTTP/')) {
                    $headers = $received = [];
                } elseif (($colon = strpos($line, ':')) !== false) {
                    $name = strtolower(substr($line, 0, $colon));
                    $value = trim(substr($line, $colon + 1));
                    if ($name === 'set-cookie') {
                        $received[] = $value;
                    }
                    $headers[$name] = isset($headers[$name]) ? array_merge((array) $headers[$name], [$value]) : $value;
                }
                return strlen($line);
            },
        ];
        if ($this->fields !== []) {
            $options[CURLOPT_POSTFIELDS] = $this->fields + (is_array($data) ? $data : []);
        } elseif ($data !== null && $data !== '') {
            $options[CURLOPT_POSTFIELDS] = is_array($data) ? http_build_query($data) : $data;
        }
        if (($this->cookies ?? []) !== []) {
            $options[CURLOPT_COOKIE] = implode('; ', array_map(static fn (string $name, string $value): string => "$name=" . rawurlencode($value), array_keys($this->cookies), $this->cookies));
        }
        if ($this->basic !== null) {
            $options[CURLOPT_USERPWD] = implode(':', $this->basic);
        }
        $lines[] = 'Expect:';
        curl_setopt_array($curl, $options + [CURLOPT_HTTPHEADER => $lines]);
        $body = curl_exec($curl);
        $this->requestBody = null;
        $this->fields = [];
        if ($body === false) {
            $this->errCode = curl_errno($curl) === CURLE_OPERATION_TIMEDOUT ? SOCKET_ETIMEDOUT : SOCKET_ECONNREFUSED;
            $this->errMsg = curl_error($curl);
            $this->statusCode = match (curl_errno($curl)) {
                CURLE_OPERATION_TIMEDOUT => SWOOLE_HTTP_CLIENT_ESTATUS_REQUEST_TIMEOUT,
                CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST => SWOOLE_HTTP_CLIENT_ESTATUS_CONNECT_FAILED,
                default => SWOOLE_HTTP_CLIENT_ESTATUS_SERVER_RESET,
            };
            $this->body = '';
            $this->connected = false;
            return false;
        }
        $this->errCode = 0;
        $this->errMsg = '';
        $this->connected = true;
        $this->statusCode = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $this->headers = $headers;
        $this->set_cookie_headers = $received === [] ? null : $received;
        foreach ($received as $line) {
            [$name, $value] = explode('=', explode(';', $line, 2)[0], 2) + [1 => ''];
            $this->cookies[trim($name)] = urldecode($value);
        }
        $this->body = $body;
        return true;
    }
}

namespace Swoole\Coroutine\Http\Client;

class Exception extends \Swoole\Exception
{
}

namespace Swoole\Coroutine\Http;

function request(string $url, string $method, mixed $data = null, ?array $options = null, ?array $headers = null, ?array $cookies = null): Client
{
    $parts = parse_url($url);
    $ssl = ($parts['scheme'] ?? 'http') === 'https';
    $client = new Client($parts['host'] ?? '', $parts['port'] ?? 0, $ssl);
    $client->set($options ?? []);
    $client->setMethod($method);
    $client->setHeaders($headers ?? []);
    $cookies === null || $client->setCookies($cookies);
    $data === null || $client->setData($data);
    $client->execute(($parts['path'] ?? '/') . (isset($parts['query']) ? '?' . $parts['query'] : ''));
    return $client;
}

function get(string $url, ?array $options = null, ?array $headers = null, ?array $cookies = null): Client
{
    return request($url, 'GET', null, $options, $headers, $cookies);
}

function post(string $url, mixed $data, ?array $options = null, ?array $headers = null, ?array $cookies = null): Client
{
    return request($url, 'POST', $data, $options, $headers, $cookies);
}

namespace Swoole;

/** The client of scripts that block: the same one, which suspends only where it can. */
class Client extends Coroutine\Client
{
    public $id = null;

    public $reuse = false;

    public function __construct(int $type = SWOOLE_SOCK_TCP, bool $async = false, string $id = '')
    {
        parent::__construct($type);
    }
}

namespace Outboard\Engine\Swoole;

/** Of a message that begins with its length; null while that has not come. */
function message_length(string $read, array $options): ?int
{
    $type = $options['package_length_type'] ?? 'N';
    $offset = $options['package_length_offset'] ?? 0;
    $size = ['c' => 1, 'C' => 1, 's' => 2, 'S' => 2, 'n' => 2, 'v' => 2, 'l' => 4, 'L' => 4, 'N' => 4, 'V' => 4][$type] ?? 4;
    if (isset($options['package_length_func'])) {
        $length = ($options['package_length_func'])($read);
        return $length > 0 ? $length : null;
    }
    return strlen($read) < $offset + $size ? null : unpack($type, $read, $offset)[1] + ($options['package_body_offset'] ?? 0);
}
