<?php

namespace Swoole;

use Outboard\Engine\Swoole as Engine;

/** The client of scripts without coroutines, on the same socket; in a coroutine its calls suspend that. */
class Client
{
    public const MSG_OOB = 1;

    public const MSG_PEEK = 2;

    public const MSG_DONTWAIT = 64;

    public const MSG_WAITALL = 256;

    public const SHUT_RDWR = 2;

    public const SHUT_RD = 0;

    public const SHUT_WR = 1;

    public int $errCode = 0;

    public int $sock = -1;

    public bool $reuse = false;

    public int $reuseCount = 0;

    public int $type = 0;

    public ?string $id = null;

    public ?array $setting = null;

    protected ?Coroutine\Socket $socket = null;

    protected bool $connected = false;

    /** @var array<string, Coroutine\Socket> connections that are used again, of SWOOLE_KEEP */
    private static array $idle = [];

    private string $key = '';

    public function __construct(int $type, bool|int $async = SWOOLE_SOCK_SYNC, string $id = '')
    {
        Engine\socket_family($type);
        if ($async) {
            throw new Error('the asynchronous client is Swoole\Async\Client; within coroutines use Swoole\Coroutine\Client');
        }
        $this->type = $type;
        $this->id = $id === '' ? null : $id;
    }

    public function __destruct()
    {
    }

    public function set(array $settings): bool
    {
        $this->setting = $settings + ($this->setting ?? []);
        $this->socket?->setProtocol($settings);
        return true;
    }

    public function connect(string $host, int $port = 0, float $timeout = 0.5, int $sock_flag = 0): bool
    {
        if ($this->connected) {
            return Engine\warn('Swoole\Client::connect(): the client has already been connected to a server');
        }
        if ($host === '') {
            return Engine\warn('Swoole\Client::connect(): the host is empty');
        }
        [$domain, $kind] = Engine\socket_family($this->type);
        if ($domain !== AF_UNIX && ($port <= 0 || $port > 65535)) {
            $this->errCode = SWOOLE_ERROR_INVALID_PARAMS;
            return Engine\warn("Swoole\\Client::connect(): the port $port is invalid");
        }
        $this->key = $this->type & SWOOLE_KEEP ? "$this->type $host $port $this->id" : '';
        $idle = self::$idle[$this->key] ?? null;
        unset(self::$idle[$this->key]);
        if ($idle !== null && $idle->checkLiveness()) {
            $this->socket = $idle;
            $this->reuse = true;
            $this->reuseCount++;
        } else {
            $this->socket = new Coroutine\Socket($domain, $kind, 0);
            $this->prepare($host, $timeout);
            if (!Engine\Proxy::connect($this->socket, $this->setting ?? [], $host, $port, $timeout) || $this->type & SWOOLE_SSL && !$this->socket->sslHandshake()) {
                $this->errCode = $this->socket->errCode;
                $this->socket->close();
                $this->socket = null;
                return Engine\warn("Swoole\\Client::connect(): connect to server[$host:$port] failed. Error: " . Engine\error_text($this->errCode) . "[$this->errCode]");
            }
        }
        $this->sock = $this->socket->fd;
        $this->errCode = 0;
        return $this->connected = true;
    }

    private function prepare(string $host, float $timeout): void
    {
        $this->socket->setProtocol(($this->setting ?? []) + (filter_var($host, FILTER_VALIDATE_IP) ? [] : ['ssl_host_name' => $host]));
        $this->socket->setTimeout((float) ($this->setting['read_timeout'] ?? $this->setting['timeout'] ?? $timeout), SWOOLE_EVENT_READ);
        $this->socket->setTimeout((float) ($this->setting['write_timeout'] ?? $this->setting['timeout'] ?? $timeout), SWOOLE_EVENT_WRITE);
        if (isset($this->setting['bind_address']) || isset($this->setting['bind_port'])) {
            $this->socket->bind($this->setting['bind_address'] ?? '0.0.0.0', (int) ($this->setting['bind_port'] ?? 0));
        }
    }

    public function recv(int $size = 65536, int $flag = 0): string|false
    {
        if (!$this->isUsable('recv')) {
            return false;
        }
        $has_protocol = !empty($this->setting['open_length_check']) || !empty($this->setting['open_eof_check']) || !empty($this->setting['open_eof_split']);
        $data = match (true) {
            ($flag & self::MSG_PEEK) !== 0 => $this->socket->peek($size),
            ($flag & self::MSG_WAITALL) !== 0 => $this->socket->recvAll($size),
            $has_protocol => $this->socket->recvPacket(),
            default => $this->socket->recv($size),
        };
        $this->errCode = $this->socket->errCode;
        return $data;
    }

    public function send(string $data, int $flag = 0): int|false
    {
        if (!$this->isUsable('send')) {
            return false;
        }
        if ($data === '') {
            return Engine\warn('Swoole\Client::send(): data to send is empty');
        }
        $sent = $this->socket->sendAll($data);
        $this->errCode = $this->socket->errCode;
        return $sent;
    }

    public function sendto(string $ip, int $port, string $data): bool
    {
        if ($this->socket === null) {
            [$domain, $kind] = Engine\socket_family($this->type);
            $this->socket = new Coroutine\Socket($domain, $kind, 0);
            $this->sock = $this->socket->fd;
        }
        $sent = $this->socket->sendto($ip, $port, $data);
        $this->errCode = $this->socket->errCode;
        return $sent === strlen($data);
    }

    public function sendfile(string $filename, int $offset = 0, int $length = 0): bool
    {
        return $this->isUsable('sendfile') && $this->socket->sendFile($filename, $offset, $length);
    }

    public function enableSSL(?callable $onSslReady = null): bool
    {
        if (!$this->isUsable('enableSSL') || !$this->socket->sslHandshake()) {
            return false;
        }
        $onSslReady === null || $onSslReady($this);
        return true;
    }

    public function getPeerCert(): string|bool
    {
        return $this->socket?->peerCertificate() ?? false;
    }

    public function verifyPeerCert(bool $allow_self_signed = false): bool
    {
        return $this->isUsable('verifyPeerCert') && Engine\is_trusted($this->socket->peerCertificate(), $this->setting ?? [], $allow_self_signed);
    }

    public function isConnected(): bool
    {
        return $this->connected;
    }

    public function getsockname(): array|false
    {
        return $this->socket === null ? false : Engine\host_and_port($this->socket->getsockname());
    }

    public function getpeername(): array|false
    {
        return $this->socket === null ? false : Engine\host_and_port($this->socket->getpeername());
    }

    public function getSocket(): mixed
    {
        return $this->socket?->extension() ?? false;
    }

    public function shutdown(int $how): bool
    {
        return $this->isUsable('shutdown') && $this->socket->shutdown($how);
    }

    public function close(bool $force = false): bool
    {
        if ($this->socket === null) {
            return Engine\warn('Swoole\Client::close(): the client is not connected to a server');
        }
        if ($this->key !== '' && !$force && !($this->setting['close'] ?? false)) {
            self::$idle[$this->key] = $this->socket;
        } else {
            $this->socket->close();
        }
        $this->socket = null;
        $this->sock = -1;
        $this->connected = false;
        return true;
    }

    protected function isUsable(string $method): bool
    {
        if ($this->connected && $this->socket !== null) {
            return true;
        }
        $this->errCode = SWOOLE_ERROR_CLIENT_NO_CONNECTION;
        return Engine\warn("Swoole\\Client::$method(): the client is not connected to a server");
    }
}

namespace Swoole\Async;

use Outboard\Engine\Swoole as Engine;

/** The client of event callbacks: a coroutine connects and reads, and calls them. */
class Client extends \Swoole\Client
{
    /** @var array<string, callable> */
    private array $handlers = [];

    private int $reader = 0;

    private bool $sleeps = false;

    public function __construct(int $type)
    {
        parent::__construct($type);
    }

    public function on(string $host, callable $callback): bool
    {
        $this->handlers[strtolower($host)] = $callback;
        return true;
    }

    public function connect(string $host, int $port = 0, float $timeout = 0.5, int $sock_flag = 0): bool
    {
        $is_stream = Engine\socket_family($this->type)[1] === SOCK_STREAM;
        foreach ($is_stream ? ['connect', 'error', 'close', 'receive'] : ['receive'] as $event) {
            if (!isset($this->handlers[$event])) {
                throw new \Swoole\Error("no 'on" . ucfirst($event) . "' callback function");
            }
        }
        $this->reader = \Swoole\Coroutine::create(function () use ($host, $port, $timeout): void {
            if (!@parent::connect($host, $port, $timeout)) {
                $this->call('error');
                return;
            }
            $this->call('connect');
            $this->read();
        });
        return true;
    }

    private function read(): void
    {
        while ($this->connected) {
            if ($this->sleeps) {
                \Swoole\Coroutine::yield();
                continue;
            }
            $this->socket->setTimeout(-1.0);
            $data = $this->recv();
            if (is_string($data) && $data !== '') {
                $this->call('receive', $data);
            } elseif ($this->connected && !$this->sleeps) {
                $this->close();
            }
        }
    }

    private function call(string $event, mixed ...$arguments): void
    {
        if (isset($this->handlers[$event])) {
            ($this->handlers[$event])($this, ...$arguments);
        }
    }

    public function sleep(): bool
    {
        $this->sleeps = true;
        $this->socket?->cancel();
        return $this->connected;
    }

    public function wakeup(): bool
    {
        $was = $this->sleeps;
        $this->sleeps = false;
        return $was && $this->connected && Engine\resume($this->reader);
    }

    public function close(bool $force = false): bool
    {
        if (!$this->connected) {
            return false;
        }
        parent::close($force);
        $this->call('close');
        return true;
    }
}
