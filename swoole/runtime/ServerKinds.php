<?php

namespace Swoole\Http;

class Server extends \Swoole\Server
{
    protected function kind(): string
    {
        return 'http';
    }
}

namespace Swoole\WebSocket;

class Server extends \Swoole\Http\Server
{
    protected function kind(): string
    {
        return 'websocket';
    }
}

namespace Swoole\Redis;

class Server extends \Swoole\Server
{
    protected function kind(): string
    {
        return 'redis';
    }
}
