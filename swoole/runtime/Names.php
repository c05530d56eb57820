<?php

namespace Outboard\Engine\Swoole;

/** Short names, and those of the versions before 4. */
const NAMES = [
    'Co' => \Swoole\Coroutine::class,
    'Co\WaitGroup' => \Swoole\Coroutine\WaitGroup::class,
    'Co\Barrier' => \Swoole\Coroutine\Barrier::class,
    'Co\Context' => \Swoole\Coroutine\Context::class,
    'Co\Iterator' => \Swoole\Coroutine\Iterator::class,
    'Co\Scheduler' => \Swoole\Coroutine\Scheduler::class,
    'Co\System' => \Swoole\Coroutine\System::class,
    'swoole_server' => \Swoole\Server::class,
    'swoole_server_port' => \Swoole\Server\Port::class,
    'swoole_server_task' => \Swoole\Server\Task::class,
    'swoole_http_server' => \Swoole\Http\Server::class,
    'swoole_http_request' => \Swoole\Http\Request::class,
    'swoole_http_response' => \Swoole\Http\Response::class,
    'swoole_websocket_server' => \Swoole\WebSocket\Server::class,
    'swoole_redis_server' => \Swoole\Redis\Server::class,
    'swoole_timer' => \Swoole\Timer::class,
    'swoole_event' => \Swoole\Event::class,
    'swoole_runtime' => \Swoole\Runtime::class,
    'swoole_coroutine' => \Swoole\Coroutine::class,
    'swoole_connection_iterator' => \Swoole\Connection\Iterator::class,
    'swoole_exception' => \Swoole\Exception::class,
    'swoole_error' => \Swoole\Error::class,
];

/** The part of the runtime with a class, which is loaded when it is first used. */
const LAZY = [
    'Outboard\Engine\Swoole\HttpMessage' => 'HttpMessage',
    'Outboard\Engine\Swoole\ParsedRequest' => 'HttpServer',
    'Outboard\Engine\Swoole\Proxy' => 'Proxy',
    'Outboard\Engine\Swoole\SocketResponse' => 'HttpServer',
    'Outboard\Engine\Swoole\SocketReader' => 'SocketReader',
    'Outboard\Engine\Swoole\WebSocketPeer' => 'Frame',
    'Swoole\ArrayObject' => 'ArrayObject',
    'Swoole\Async\Client' => 'SyncClient',
    'Swoole\Client' => 'SyncClient',
    'Swoole\ConnectionPool' => 'ConnectionPool',
    'Swoole\Constant' => 'Constant',
    'Swoole\Coroutine\Client' => 'Client',
    'Swoole\Coroutine\Http2\Client' => 'Http2Client',
    'Swoole\Coroutine\Http2\Client\Exception' => 'Http2Client',
    'Swoole\Coroutine\Http\Client' => 'HttpClient',
    'Swoole\Coroutine\Http\ClientProxy' => 'HttpClient',
    'Swoole\Coroutine\Http\Client\Exception' => 'HttpClient',
    'Swoole\Coroutine\Http\Server' => 'HttpServer',
    'Swoole\Coroutine\MySQL' => 'MySQL',
    'Swoole\Coroutine\MySQL\Exception' => 'MySQL',
    'Swoole\Coroutine\MySQL\Statement' => 'MySQL',
    'Swoole\Coroutine\Server' => 'CoroutineServer',
    'Swoole\Coroutine\Server\Connection' => 'CoroutineServer',
    'Swoole\Coroutine\Socket' => 'Socket',
    'Swoole\Coroutine\Socket\Exception' => 'Socket',
    'Swoole\Database\MysqliConfig' => 'ConnectionPool',
    'Swoole\Database\MysqliException' => 'ConnectionPool',
    'Swoole\Database\MysqliPool' => 'ConnectionPool',
    'Swoole\Database\PDOConfig' => 'ConnectionPool',
    'Swoole\Database\PDOPool' => 'ConnectionPool',
    'Swoole\Database\RedisConfig' => 'ConnectionPool',
    'Swoole\Database\RedisPool' => 'ConnectionPool',
    'Swoole\Exception\ArrayKeyNotExists' => 'ArrayObject',
    'Swoole\Http2\Request' => 'Http2Client',
    'Swoole\Http2\Response' => 'Http2Client',
    'Swoole\Http\Cookie' => 'Cookie',
    'Swoole\Http\Status' => 'Status',
    'Swoole\MultibyteStringObject' => 'StringObject',
    'Swoole\ObjectProxy' => 'ObjectProxy',
    'Swoole\Process' => 'Process',
    'Swoole\Process\Manager' => 'ProcessPool',
    'Swoole\Process\Pool' => 'ProcessPool',
    'Swoole\StringObject' => 'StringObject',
    'Swoole\WebSocket\CloseFrame' => 'Frame',
    'Swoole\WebSocket\Frame' => 'Frame',
];

/** Names, in lower case, of classes that are loaded when they are first used. */
const LAZY_NAMES = [
    'co\client' => \Swoole\Coroutine\Client::class,
    'co\http\client' => \Swoole\Coroutine\Http\Client::class,
    'co\http2\client' => \Swoole\Coroutine\Http2\Client::class,
    'co\http\server' => \Swoole\Coroutine\Http\Server::class,
    'co\mysql' => \Swoole\Coroutine\MySQL::class,
    'co\mysql\statement' => \Swoole\Coroutine\MySQL\Statement::class,
    'co\server' => \Swoole\Coroutine\Server::class,
    'co\socket' => \Swoole\Coroutine\Socket::class,
    'co\server\connection' => \Swoole\Coroutine\Server\Connection::class,
    'swoole\process\processmanager' => \Swoole\Process\Manager::class,
    'swoole_client' => \Swoole\Client::class,
    'swoole_async_client' => \Swoole\Async\Client::class,
    'swoole_mysql' => \Swoole\Coroutine\MySQL::class,
    'swoole_process' => \Swoole\Process::class,
    'swoole_process_pool' => \Swoole\Process\Pool::class,
    'swoole_websocket_closeframe' => \Swoole\WebSocket\CloseFrame::class,
    'swoole_websocket_frame' => \Swoole\WebSocket\Frame::class,
];

/** Names of classes do not depend on case. */
function autoload(string $class): void
{
    static $parts = null;
    $parts ??= array_change_key_case(LAZY);
    $name = strtolower($class);
    if (!SWOOLE_USE_SHORTNAME && str_starts_with($name, 'co\\')) {
        return;
    }
    if (isset(LAZY_NAMES[$name])) {
        class_exists(LAZY_NAMES[$name]);
        return;
    }
    if (!isset($parts[$name])) {
        return;
    }
    load($parts[$name]);
    // "instanceof" and "catch" load nothing, so the other names are there from now on.
    foreach (LAZY_NAMES as $other => $of) {
        if (LAZY[$of] === $parts[$name] && (SWOOLE_USE_SHORTNAME || !str_starts_with($other, 'co\\'))) {
            class_alias($of, $other);
        }
    }
}

foreach (NAMES as $name => $class) {
    if (SWOOLE_USE_SHORTNAME || !str_starts_with($name, 'Co')) {
        class_alias($class, $name);
    }
}
unset($name, $class);
spl_autoload_register(autoload(...));
