<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;

/** A TCP, UDP or Unix connection on a Coroutine\Socket. */
class Client
{
    public const MSG_OOB = 1;

    public const MSG_PEEK = 2;

    public const MSG_DONTWAIT = 64;

    public const MSG_WAITALL = 256;

    public int $errCode = 0;

    public string $errMsg = '';

    public int $fd = -1;

    public int $type = SWOOLE_SOCK_TCP;

    public ?array $setting = null;

    public bool $connected = false;

    private ?Socket $socket = null;

    public function __construct(int $type)
    {
        Engine\socket_family($type);
        $this->type = $type;
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
        $this->socket?->setProtocol($settings);
        return true;
    }

    public function connect(string $host, int $port = 0, float $timeout = 0, int $sock_flag = 0): bool
    {
        if ($this->connected) {
            return $this->fail(SOCKET_EISCONN);
        }
        if ($host === '') {
            return $this->fail(SWOOLE_ERROR_INVALID_PARAMS);
        }
        $socket = $this->open();
        $seconds = $timeout !== 0.0 ? $timeout : Engine\setting_timeout($this->setting, 'connect_timeout', 'socket_connect_timeout', 2.0);
        $isSecure = ($this->type & SWOOLE_SSL) !== 0;
        if ($isSecure && !isset($this->setting['ssl_host_name']) && !filter_var($host, FILTER_VALIDATE_IP)) {
            $socket->setProtocol(['ssl_host_name' => $host]);
        }
        if (!Engine\Proxy::connect($socket, $this->setting ?? [], $host, $port, $seconds) || $isSecure && !$socket->sslHandshake()) {
            $this->adopt($socket);
            $socket->close();
            $this->socket = null;
            return false;
        }
        $this->fd = $socket->fd;
        $this->connected = true;
        return $this->adopt($socket, true);
    }

    public function send(string $data, float $timeout = 0): int|false
    {
        if (!$this->isUsable()) {
            return false;
        }
        return $this->adopt($this->socket, $this->socket->sendAll($data, $timeout));
    }

    public function sendto(string $address, int $port, string $data): bool
    {
        $this->fd = $this->open()->fd;
        return $this->adopt($this->socket, $this->socket->sendto($address, $port, $data) === strlen($data));
    }

    /** What has come, or, with a protocol in set(), the next whole message; '' at the peer's end. */
    public function recv(float $timeout = 0): string|false
    {
        if (!$this->isUsable()) {
            return false;
        }
        $has_protocol = !empty($this->setting['open_length_check']) || !empty($this->setting['open_eof_check']) || !empty($this->setting['open_eof_split']);
        return $this->adopt($this->socket, $has_protocol ? $this->socket->recvPacket($timeout) : $this->socket->recv(65536, $timeout));
    }

    public function recvfrom(int $length, mixed &$address, mixed &$port = 0): string|false
    {
        if ($length <= 0 || !$this->isUsable(false)) {
            return false;
        }
        $data = $this->adopt($this->socket, $this->socket->recvfrom($peer));
        $address = $peer['address'] ?? null;
        $port = $peer['port'] ?? 0;
        return $data === false ? false : substr($data, 0, $length);
    }

    public function peek(int $length = 65535): string|false
    {
        return $this->isUsable() ? $this->adopt($this->socket, $this->socket->peek($length)) : false;
    }

    public function sendfile(string $filename, int $offset = 0, int $length = 0): bool
    {
        return $this->isUsable() && $this->adopt($this->socket, $this->socket->sendFile($filename, $offset, $length));
    }

    public function enableSSL(): bool
    {
        if (!$this->isUsable()) {
            return false;
        }
        $this->type |= SWOOLE_SSL;
        return $this->adopt($this->socket, $this->socket->sslHandshake());
    }

    public function getPeerCert(): string|false
    {
        return $this->socket?->peerCertificate() ?? false;
    }

    public function verifyPeerCert(bool $allow_self_signed = false): bool
    {
        return $this->isUsable() && Engine\is_trusted($this->socket->peerCertificate(), $this->setting ?? [], $allow_self_signed);
    }

    public function getpeername(): array|false
    {
        return $this->isUsable(false) ? Engine\host_and_port($this->socket->getpeername()) : false;
    }

    public function getsockname(): array|false
    {
        return $this->isUsable(false) ? Engine\host_and_port($this->socket->getsockname()) : false;
    }

    public function isConnected(): bool
    {
        return $this->connected;
    }

    public function exportSocket(): Socket|false
    {
        return $this->socket ?? false;
    }

    public function close(): bool
    {
        if ($this->socket === null) {
            return $this->fail(SWOOLE_ERROR_CLIENT_NO_CONNECTION);
        }
        $this->socket->close();
        $this->socket = null;
        $this->fd = -1;
        $this->connected = false;
        return true;
    }

    private function open(): Socket
    {
        if ($this->socket === null) {
            [$domain, $kind] = Engine\socket_family($this->type);
            $this->socket = new Socket($domain, $kind, 0);
            $this->socket->setProtocol($this->setting ?? []);
            $this->socket->setTimeout(Engine\setting_timeout($this->setting, 'read_timeout', 'socket_read_timeout', -1.0), SWOOLE_EVENT_READ);
            $this->socket->setTimeout(Engine\setting_timeout($this->setting, 'write_timeout', 'socket_write_timeout', -1.0), SWOOLE_EVENT_WRITE);
            if (isset($this->setting['bind_address']) || isset($this->setting['bind_port'])) {
                $this->socket->bind($this->setting['bind_address'] ?? '0.0.0.0', (int) ($this->setting['bind_port'] ?? 0));
            }
            if (!empty($this->setting['open_tcp_nodelay'])) {
                $this->socket->setOption(SOL_TCP, TCP_NODELAY, 1);
            }
        }
        return $this->socket;
    }

    private function isUsable(bool $isConnected = true): bool
    {
        if ($this->socket === null || $isConnected && !$this->connected) {
            return $this->fail(SWOOLE_ERROR_CLIENT_NO_CONNECTION);
        }
        return true;
    }

    /** The result, after the socket's error has become that of the client. */
    private function adopt(Socket $socket, mixed $result = false): mixed
    {
        $this->errCode = $socket->errCode;
        $this->errMsg = $socket->errMsg;
        return $result;
    }

    private function fail(int $code): false
    {
        $this->errCode = $code;
        $this->errMsg = Engine\error_text($code);
        Engine\LastError::set($code);
        return false;
    }
}
