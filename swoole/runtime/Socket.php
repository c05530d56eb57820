<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;

/**
 * A socket whose calls suspend their coroutine. The descriptor is non-blocking; with TLS, reads and
 * writes go through a stream of the extension openssl, on a duplicate of the descriptor.
 */
class Socket
{
    use Engine\SocketReader;

    private const READ_LENGTH = 65536;

    public int $fd = -1;

    public int $domain = 0;

    public int $type = 0;

    public int $protocol = 0;

    public int $errCode = 0;

    public string $errMsg = '';

    private ?\Socket $socket = null;

    /** @var resource|null the stream that encrypts */
    private mixed $tls = null;

    private array $setting = [];

    /** @var array<int, float> by SWOOLE_EVENT_*, of setOption() */
    private array $timeouts = [];

    /** @var array<int, int> the coroutine that waits, by SWOOLE_EVENT_* */
    private array $bound = [SWOOLE_EVENT_READ => 0, SWOOLE_EVENT_WRITE => 0];

    private bool $isServer = false;

    public function __construct(int $domain, int $type, int $protocol = 0)
    {
        $socket = @socket_create($domain, $type, $protocol);
        if ($socket === false) {
            throw new Socket\Exception(socket_strerror(socket_last_error()), socket_last_error());
        }
        $this->domain = $domain;
        $this->type = $type;
        $this->protocol = $protocol;
        $this->adopt($socket);
    }

    public function __destruct()
    {
        $this->socket === null || $this->close();
    }

    /** @internal a socket of PHP's, such as an accepted one */
    public static function around(\Socket $socket, int $domain = AF_INET, int $type = SOCK_STREAM, int $protocol = 0): self
    {
        $one = (new \ReflectionClass(self::class))->newInstanceWithoutConstructor();
        $one->domain = $domain;
        $one->type = $type;
        $one->protocol = $protocol;
        $one->adopt($socket);
        return $one;
    }

    /** The socket below a stream or below one of the extension sockets; the descriptor is shared. */
    public static function import(mixed $stream): self|false
    {
        $socket = $stream instanceof \Socket ? $stream : @socket_import_stream($stream);
        if ($socket === false) {
            return false;
        }
        $name = is_resource($stream) ? (string) stream_socket_get_name($stream, false) : '';
        $domain = $name === '' || $name[0] === '/' ? AF_UNIX : ($name[0] === '[' ? AF_INET6 : AF_INET);
        $kind = @socket_get_option($socket, SOL_SOCKET, SO_TYPE);
        return self::around($socket, $domain, is_int($kind) ? $kind : SOCK_STREAM);
    }

    private function adopt(\Socket $socket): void
    {
        $this->socket = $socket;
        socket_set_nonblock($socket);
        $this->fd = Engine\descriptor($socket);
    }

    public function bind(string $address, int $port = 0): bool
    {
        if (!$this->isOpen()) {
            return false;
        }
        if ($this->domain !== AF_UNIX) {
            socket_set_option($this->socket, SOL_SOCKET, SO_REUSEADDR, 1);
        }
        return $this->report(@socket_bind($this->socket, $address, $port));
    }

    public function listen(int $backlog = 512): bool
    {
        $this->isServer = true;
        return $this->isOpen() && $this->report(@socket_listen($this->socket, $backlog));
    }

    public function accept(float $timeout = 0): self|false
    {
        return $this->retry(SWOOLE_EVENT_READ, $this->until($timeout, SWOOLE_EVENT_READ), function (): self|false|null {
            // An error is that of the extension, not of the socket, and "try again" is none.
            socket_clear_error();
            $socket = @socket_accept($this->socket);
            if ($socket === false) {
                return in_array(socket_last_error(), [0, SOCKET_EAGAIN], true) ? null : $this->fail(socket_last_error());
            }
            $this->report(true);
            $one = self::around($socket, $this->domain, $this->type, $this->protocol);
            $one->setting = $this->setting;
            $one->isServer = true;
            return $one;
        });
    }

    public function connect(string $host, int $port = 0, float $timeout = 0): bool
    {
        if (!$this->isOpen()) {
            return false;
        }
        $seconds = $timeout !== 0.0 ? $timeout : Engine\default_timeout('socket_connect_timeout', 2.0);
        if ($this->domain !== AF_UNIX) {
            $address = Engine\resolve($host, $this->domain);
            if ($address === null) {
                return $this->fail(SWOOLE_ERROR_DNSLOOKUP_RESOLVE_FAILED);
            }
            $host = $address;
        }
        socket_clear_error($this->socket);
        if (!@socket_connect($this->socket, $host, $this->domain === AF_UNIX ? null : $port)) {
            if (!in_array(socket_last_error($this->socket), [SOCKET_EINPROGRESS, SOCKET_EALREADY], true)) {
                return $this->report(false);
            }
            if (!$this->await(SWOOLE_EVENT_WRITE, $seconds > 0 ? microtime(true) + $seconds : INF)) {
                return false;
            }
            $code = (int) socket_get_option($this->socket, SOL_SOCKET, SO_ERROR);
            if ($code !== 0) {
                return $this->fail($code);
            }
        }
        $this->report(true);
        return empty($this->setting['open_ssl']) || $this->sslHandshake();
    }

    /** Begins TLS, with the options ssl_* of setProtocol(). */
    public function sslHandshake(): bool
    {
        if (!$this->isOpen() || $this->tls !== null) {
            return false;
        }
        $stream = Engine\tls_stream($this->fd, stream_context_create(['ssl' => Engine\tls_options($this->setting, $this->isServer)]));
        if ($stream === null) {
            return $this->fail(SWOOLE_ERROR_SSL_CREATE_CONTEXT_FAILED);
        }
        stream_set_timeout($stream, 10);
        $method = $this->isServer ? STREAM_CRYPTO_METHOD_ANY_SERVER : STREAM_CRYPTO_METHOD_ANY_CLIENT;
        error_clear_last();
        if (@stream_socket_enable_crypto($stream, true, $method) !== true) {
            $verified = !str_contains(error_get_last()['message'] ?? '', 'verify failed') && !str_contains(error_get_last()['message'] ?? '', 'did not match');
            fclose($stream);
            return $this->fail($verified ? SWOOLE_ERROR_SSL_HANDSHAKE_FAILED : SWOOLE_ERROR_SSL_VERIFY_FAILED);
        }
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);
        stream_set_write_buffer($stream, 0);
        $this->tls = $stream;
        return $this->report(true);
    }

    public function recv(int $length = self::READ_LENGTH, float $timeout = 0): string|false
    {
        return $this->receive($length, $this->until($timeout, SWOOLE_EVENT_READ));
    }

    public function peek(int $length = self::READ_LENGTH): string|false
    {
        if (!$this->isOpen()) {
            return false;
        }
        if ($this->read !== '') {
            return substr($this->read, 0, $length);
        }
        $received = @socket_recv($this->socket, $data, $length, MSG_PEEK | MSG_DONTWAIT);
        return $this->report($received !== false) ? (string) $data : false;
    }

    public function writeVector(array $io_vector, float $timeout = 0): int|false
    {
        return $this->send(implode('', $io_vector), $timeout);
    }

    public function writeVectorAll(array $io_vector, float $timeout = 0): int|false
    {
        return $this->sendAll(implode('', $io_vector), $timeout);
    }

    /** As much as the kernel takes at once. */
    public function send(string $data, float $timeout = 0): int|false
    {
        return $this->transmit($data, $this->until($timeout, SWOOLE_EVENT_WRITE));
    }

    public function sendAll(string $data, float $timeout = 0): int|false
    {
        $until = $this->until($timeout, SWOOLE_EVENT_WRITE);
        $all = 0;
        while ($all < strlen($data)) {
            $sent = $this->transmit($all === 0 ? $data : substr($data, $all, 1 << 20), $until);
            if ($sent === false) {
                return $all > 0 ? $all : false;
            }
            $all += $sent;
        }
        return $all;
    }

    public function sendFile(string $file, int $offset = 0, int $length = 0): bool
    {
        $handle = is_file($file) ? @fopen($file, 'rb') : false;
        $size = $handle === false ? 0 : (int) fstat($handle)['size'];
        if ($handle === false || $offset < 0 || $offset + $length > $size) {
            trigger_error("sendfile() of $file failed: " . ($handle === false ? 'no such file' : 'it has fewer bytes'), E_USER_WARNING);
            return $this->fail($handle === false ? SOCKET_ENOENT : SWOOLE_ERROR_INVALID_PARAMS);
        }
        fseek($handle, $offset);
        $left = $length > 0 ? $length : $size - $offset;
        while ($left > 0) {
            $piece = (string) fread($handle, min($left, 1 << 18));
            if ($piece === '' || $this->sendAll($piece) !== strlen($piece)) {
                return false;
            }
            $left -= strlen($piece);
        }
        return true;
    }

    public function sendto(string $addr, int $port, string $data): int|false
    {
        if (!$this->isOpen()) {
            return false;
        }
        if ($this->domain !== AF_UNIX) {
            $addr = Engine\resolve($addr, $this->domain);
            if ($addr === null) {
                return $this->fail(SWOOLE_ERROR_DNSLOOKUP_RESOLVE_FAILED);
            }
        }
        return $this->retry(SWOOLE_EVENT_WRITE, $this->until(0, SWOOLE_EVENT_WRITE), fn (): int|false|null
            => $this->outcome(@socket_sendto($this->socket, $data, strlen($data), MSG_DONTWAIT, $addr, $port)));
    }

    public function recvfrom(mixed &$peername, float $timeout = 0): string|false
    {
        return $this->retry(SWOOLE_EVENT_READ, $this->until($timeout, SWOOLE_EVENT_READ), function () use (&$peername): string|false|null {
            $address = '';
            $port = 0;
            $received = $this->outcome(@socket_recvfrom($this->socket, $data, self::READ_LENGTH, MSG_DONTWAIT, $address, $port));
            if (!is_int($received)) {
                return $received;
            }
            $peername = ['address' => (string) $address, 'port' => $this->domain === AF_UNIX ? 0 : $port];
            return (string) $data;
        });
    }

    public function setProtocol(array $settings): bool
    {
        $this->setting = $settings + $this->setting;
        return true;
    }

    public function setOption(int $level, int $opt_name, mixed $opt_value): bool
    {
        if ($level === SOL_SOCKET && ($opt_name === SO_RCVTIMEO || $opt_name === SO_SNDTIMEO) && is_array($opt_value)) {
            $event = $opt_name === SO_RCVTIMEO ? SWOOLE_EVENT_READ : SWOOLE_EVENT_WRITE;
            $this->timeouts[$event] = ($opt_value['sec'] ?? 0) + ($opt_value['usec'] ?? 0) / 1e6;
        }
        return $this->isOpen() && $this->report(@socket_set_option($this->socket, $level, $opt_name, $opt_value));
    }

    public function getOption(int $level, int $opt_name): mixed
    {
        return $this->isOpen() ? @socket_get_option($this->socket, $level, $opt_name) : false;
    }

    public function getpeername(): array|false
    {
        $port = 0;
        return $this->isOpen() && $this->report(@socket_getpeername($this->socket, $address, $port)) ? ['address' => $address, 'port' => $port] : false;
    }

    public function getsockname(): array|false
    {
        $port = 0;
        return $this->isOpen() && $this->report(@socket_getsockname($this->socket, $address, $port)) ? ['address' => $address, 'port' => $port] : false;
    }

    public function checkLiveness(): bool
    {
        if ($this->socket === null) {
            return false;
        }
        $received = @socket_recv($this->socket, $data, 1, MSG_PEEK | MSG_DONTWAIT);
        return $received > 0 || $received === false && socket_last_error($this->socket) === SOCKET_EAGAIN;
    }

    public function getBoundCid(int $event): int
    {
        return $this->bound[$event] ?? 0;
    }

    /** Ends the wait of another coroutine. */
    public function cancel(int $event = SWOOLE_EVENT_READ): bool
    {
        return $this->bound[$event] !== 0 && Engine\cancel($this->bound[$event]);
    }

    public function isClosed(): bool
    {
        return $this->socket === null;
    }

    public function shutdown(int $how = 2): bool
    {
        return $this->isOpen() && $this->report(@socket_shutdown($this->socket, $how));
    }

    public function close(): bool
    {
        if ($this->socket === null) {
            return false;
        }
        $socket = $this->socket;
        $this->socket = null;
        $this->tls === null || fclose($this->tls);
        $this->tls = null;
        foreach ($this->bound as $cid) {
            $cid === 0 || Engine\cancel($cid);
        }
        socket_close($socket);
        $this->fd = -1;
        return true;
    }

    /** @internal the certificate of the peer in PEM, with `capture_peer_cert` */
    public function peerCertificate(): string|false
    {
        $options = $this->tls === null ? [] : stream_context_get_options($this->tls)['ssl'] ?? [];
        return isset($options['peer_certificate']) && openssl_x509_export($options['peer_certificate'], $text) ? $text : false;
    }

    /** @internal the socket as one of the extension sockets */
    public function extension(): ?\Socket
    {
        return $this->socket;
    }

    /** @internal for clients, which have names and defaults of their own for these */
    public function setTimeout(float $seconds, int $event = SWOOLE_EVENT_READ): void
    {
        $this->timeouts[$event] = $seconds;
    }

    private function receive(int $length, float $until): string|false
    {
        if ($this->read !== '') {
            return $this->take($length);
        }
        $length = $length > 0 ? $length : self::READ_LENGTH;
        return $this->retry(SWOOLE_EVENT_READ, $until, function () use ($length): string|false|null {
            if ($this->tls !== null) {
                return $this->receiveEncrypted($length);
            }
            $data = null;
            $received = $this->outcome(@socket_recv($this->socket, $data, $length, MSG_DONTWAIT));
            return is_int($received) ? (string) $data : $received;
        });
    }

    private function receiveEncrypted(int $length): ?string
    {
        $data = @fread($this->tls, $length);
        // feof() would wait.
        if (($data === false || $data === '') && !stream_get_meta_data($this->tls)['eof']) {
            return null;
        }
        $this->report(true);
        return (string) $data;
    }

    private function transmit(string $data, float $until): int|false
    {
        return $this->retry(SWOOLE_EVENT_WRITE, $until, fn (): int|false|null => $this->tls !== null
            ? $this->transmitEncrypted($data)
            : $this->outcome(@socket_send($this->socket, $data, strlen($data), MSG_NOSIGNAL | MSG_DONTWAIT)));
    }

    private function transmitEncrypted(string $data): int|false|null
    {
        error_clear_last();
        $sent = @fwrite($this->tls, $data);
        if ($sent > 0 || $data === '') {
            $this->report(true);
            return $sent;
        }
        $isOver = stream_get_meta_data($this->tls)['eof'] || str_contains(error_get_last()['message'] ?? '', 'SSL');
        return $isOver ? $this->fail(SOCKET_EPIPE) : null;
    }

    /** The first result that is not null; in between, the coroutine waits until the descriptor is ready. */
    private function retry(int $event, float $until, \Closure $attempt): mixed
    {
        while ($this->isOpen()) {
            $result = $attempt();
            if ($result !== null) {
                return $result;
            }
            if (!$this->await($event, $until)) {
                return false;
            }
        }
        return false;
    }

    /** The result of a call of the extension sockets; null: the descriptor is not ready. */
    private function outcome(int|false $result): int|false|null
    {
        if ($result === false && socket_last_error($this->socket) === SOCKET_EAGAIN) {
            return null;
        }
        $this->report($result !== false);
        return $result;
    }

    /** Suspends until the descriptor is ready; false with the reason in errCode. */
    private function await(int $event, float $until): bool
    {
        $own = Engine\id();
        $other = $this->bound[$event];
        if ($other !== 0) {
            $what = $event === SWOOLE_EVENT_READ ? 'reading' : 'writing';
            throw new \Swoole\Error("Socket#$this->fd has already been bound to another coroutine#$other, $what of the same socket in coroutine#$own at the same time is not allowed", SWOOLE_ERROR_CO_HAS_BEEN_BOUND);
        }
        $left = $until === INF ? -1.0 : $until - microtime(true);
        if ($left <= 0 && $left !== -1.0) {
            return $this->fail(SOCKET_ETIMEDOUT);
        }
        $this->bound[$event] = $own;
        try {
            $ready = Engine\wait_descriptor($this->fd, $event, $left);
        } finally {
            $this->bound[$event] = 0;
        }
        if ($this->socket === null) {
            return $this->fail(SOCKET_ECONNRESET);
        }
        if ($ready !== 0) {
            return true;
        }
        return $this->fail($until === INF || microtime(true) < $until ? SOCKET_ECANCELED : SOCKET_ETIMEDOUT);
    }

    private function until(float $timeout, int $event): float
    {
        $name = $event === SWOOLE_EVENT_READ ? 'socket_read_timeout' : 'socket_write_timeout';
        $seconds = $timeout !== 0.0 ? $timeout : ($this->timeouts[$event] ?? Engine\default_timeout($name, -1.0));
        return $seconds > 0 ? microtime(true) + $seconds : INF;
    }

    private function isOpen(): bool
    {
        return $this->socket !== null || $this->fail(SOCKET_EBADF);
    }

    private function report(bool $done): bool
    {
        return $done ? $this->fail(0) || true : $this->fail(socket_last_error($this->socket));
    }

    private function fail(int $code): false
    {
        $this->errCode = $code;
        $this->errMsg = $code === 0 ? '' : Engine\error_text($code);
        $code === 0 || Engine\LastError::set($code);
        return false;
    }
}

namespace Swoole\Coroutine\Socket;

class Exception extends \Swoole\Exception
{
}
