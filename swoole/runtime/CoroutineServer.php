<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;
use Swoole\Coroutine\Server\Connection;

/** A TCP server whose connections are coroutines of this process; the gateway is not involved. */
class Server
{
    public $host = '';

    public $port = 0;

    public $type = AF_INET;

    public $fd = -1;

    public $errCode = 0;

    public $setting = [];

    protected $running = false;

    protected $fn;

    protected $socket;

    public function __construct(string $host, int $port = 0, bool $ssl = false, bool $reuse_port = false)
    {
        $isPath = str_starts_with($host, 'unix:');
        $this->type = $isPath ? AF_UNIX : (str_contains($host, ':') ? AF_INET6 : AF_INET);
        $this->socket = new Socket($this->type, SOCK_STREAM, 0);
        $reuse_port && $this->socket->setOption(SOL_SOCKET, SO_REUSEPORT, 1);
        $ssl && $this->socket->setProtocol(['open_ssl' => true]);
        if (!$this->socket->bind($isPath ? '/' . ltrim(substr($host, 5), '/') : $host, $port) || !$this->socket->listen()) {
            throw new \Swoole\Exception("bind({$host}:{$port}) failed: {$this->socket->errMsg}", $this->socket->errCode);
        }
        $this->host = $host;
        $this->port = $isPath ? 0 : $this->socket->getsockname()['port'];
        $this->fd = $this->socket->fd;
        $this->setting = ['open_ssl' => $ssl];
    }

    public function set(array $setting): void
    {
        $this->setting = $setting + $this->setting;
    }

    public function handle(callable $fn): void
    {
        $this->fn = $fn;
    }

    public function shutdown(): bool
    {
        $this->running = false;
        return $this->socket->cancel();
    }

    public function start(): bool
    {
        if ($this->fn === null) {
            $this->errCode = SOCKET_EINVAL;
            return false;
        }
        $this->running = true;
        $this->socket->setProtocol($this->setting);
        while ($this->running) {
            $connection = $this->socket->accept(-1);
            if ($connection !== false) {
                Coroutine::create(function () use ($connection): void {
                    if (empty($this->setting['open_ssl']) || $connection->sslHandshake()) {
                        ($this->fn)(new Connection($connection));
                    }
                });
            } elseif (in_array($this->socket->errCode, [SOCKET_EMFILE, SOCKET_ENFILE], true)) {
                Coroutine::sleep(1);
            } elseif ($this->socket->errCode === SOCKET_ECANCELED || $this->socket->isClosed()) {
                break;
            } elseif ($this->socket->errCode !== SOCKET_ETIMEDOUT) {
                $this->errCode = $this->socket->errCode;
                Engine\warn("accept failed, Error: {$this->socket->errMsg}[{$this->socket->errCode}]");
                break;
            }
        }
        return true;
    }
}

namespace Swoole\Coroutine\Server;

use Swoole\Coroutine\Socket;

class Connection
{
    protected $socket;

    public function __construct(Socket $conn)
    {
        $this->socket = $conn;
    }

    public function recv(float $timeout = 0)
    {
        return $this->socket->recvPacket($timeout);
    }

    public function send(string $data)
    {
        return $this->socket->sendAll($data);
    }

    public function close(): bool
    {
        return $this->socket->close();
    }

    public function exportSocket(): Socket
    {
        return $this->socket;
    }
}
