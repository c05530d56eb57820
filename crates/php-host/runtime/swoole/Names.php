<?php

namespace Outboard\Engine\Swoole;

/** Short names, and those of the versions before 4. */
const NAMES = [
    'Co' => \Swoole\Coroutine::class,
    'Chan' => \Swoole\Coroutine\Channel::class,
    'Co\Channel' => \Swoole\Coroutine\Channel::class,
    'Co\WaitGroup' => \Swoole\Coroutine\WaitGroup::class,
    'Co\Barrier' => \Swoole\Coroutine\Barrier::class,
    'Co\Context' => \Swoole\Coroutine\Context::class,
    'Co\Iterator' => \Swoole\Coroutine\Iterator::class,
    'Co\Scheduler' => \Swoole\Coroutine\Scheduler::class,
    'Co\System' => \Swoole\Coroutine\System::class,
    'swoole_server' => \Swoole\Server::class,
    'swoole_server_port' => \Swoole\Server\Port::class,
    'swoole_http_server' => \Swoole\Http\Server::class,
    'swoole_http_request' => \Swoole\Http\Request::class,
    'swoole_http_response' => \Swoole\Http\Response::class,
    'swoole_websocket_server' => \Swoole\WebSocket\Server::class,
    'swoole_websocket_frame' => \Swoole\WebSocket\Frame::class,
    'swoole_timer' => \Swoole\Timer::class,
    'swoole_event' => \Swoole\Event::class,
    'swoole_coroutine' => \Swoole\Coroutine::class,
    'swoole_channel' => \Swoole\Coroutine\Channel::class,
    'Co\Client' => \Swoole\Coroutine\Client::class,
    'Co\Socket' => \Swoole\Coroutine\Socket::class,
    'Co\MySQL' => \Swoole\Coroutine\MySQL::class,
    'Co\Redis' => \Swoole\Coroutine\Redis::class,
    'Co\PostgreSQL' => \Swoole\Coroutine\PostgreSQL::class,
    'Co\Http\Client' => \Swoole\Coroutine\Http\Client::class,
    'swoole_client' => \Swoole\Client::class,
    'swoole_process' => \Swoole\Process::class,
    'swoole_process_pool' => \Swoole\Process\Pool::class,
    'swoole_connection_iterator' => \Swoole\Connection\Iterator::class,
    'swoole_exception' => \Swoole\Exception::class,
];

foreach (NAMES as $name => $class) {
    class_alias($class, $name);
}
unset($name, $class);

