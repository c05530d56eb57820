<?php

namespace Outboard\Engine\Swoole;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;
use Swoole\Server;

/** @internal what a worker does with a connection: ring's Verb */
const SEND = 2;
const CLOSE = 4;
const SEND_TO = 5;
const BIND = 6;
const PROTECT = 7;
const PAUSE = 8;
const CONFIRM = 9;
const MESSAGE = 10;
const LENGTH = 14;
const INFO = 32;
const CONNECTIONS = 33;
const STATS = 34;
const HEARTBEAT = 35;
const ROOM = 36;

/** @internal what comes from a connection: ring's EventKind */
const OPENED = 1;
const DATA = 2;
const CLOSED = 3;
const PACKET = 4;
const PIPE_MESSAGE = 5;
const FULL = 6;
const DRAINED = 7;
const MEASURE = 9;

/** A worker asks once per this many bytes whether the client reads. */
const UNCHECKED_BYTES = 262144;

/** @internal connections of a server, which the gateway holds: what comes from them, what is sent */
trait ServerConnections
{
    /** @var array<int, array{int, int, int}> item, connection and port that a coroutine handles, by its id */
    private array $handling = [];

    /** @var array<int, list<int>> coroutines that wait until a client has read */
    private array $waiting = [];

    /** @var array<int, true> connections of this worker that are open */
    private array $open = [];

    private int $unchecked = 0;

    /** Messages and other events so far. */
    private int $handled = 0;

    private int $error = 0;

    /** Called for each event, in a coroutine of its own. */
    private function receive(int $kind, int $port, int $fd, string $bytes, int $item): void
    {
        if ($kind === FULL || $kind === DRAINED) {
            $this->changeFlow($kind, $port, $fd);
            return;
        }
        if ($kind === MEASURE) {
            Engine\server_call(LENGTH, $item, $fd, ($this->ports[$port] ?? null)?->lengthOf($bytes) ?? -1);
            return;
        }
        $id = Engine\id();
        $this->handling[$id] = [$item, $fd, $port];
        $this->count();
        try {
            match ($kind) {
                OPENED => $this->opened($port, $fd),
                DATA => $this->received($port, $fd, $bytes),
                CLOSED => $this->closed($port, $fd, $bytes === "\1"),
                PACKET => $this->receivedPacket($port, $bytes),
                PIPE_MESSAGE => $this->receivedMessage($fd, $bytes),
            };
        } finally {
            unset($this->handling[$id]);
        }
    }

    private function count(): void
    {
        // exit() passes over "finally".
        if (count($this->handling) > 2000) {
            $this->handling = array_filter($this->handling, Engine\exists(...), ARRAY_FILTER_USE_KEY);
        }
        $most = (int) ($this->setting['max_request'] ?? 0);
        if (++$this->handled === $most && !$this->taskworker) {
            Engine\server_leave();
        }
    }

    private function opened(int $port, int $fd): void
    {
        $this->open[$fd] = true;
        $this->callPort($port, 'connect', $fd, 0, '');
    }

    private function received(int $port, int $fd, string $bytes): void
    {
        if ($this->announcesEnds) {
            $this->open[$fd] = true;
        }
        $this->callPort($port, 'receive', $fd, 0, $bytes);
    }

    private function closed(int $port, int $fd, bool $isByServer): void
    {
        unset($this->open[$fd]);
        $this->wake($fd);
        $this->callPort($port, 'close', $fd, $isByServer ? -1 : 0, '');
    }

    /** Connection callbacks get either the parts or one object (event_object). */
    private function callPort(int $port, string $event, int $fd, int $reactor, string $bytes): void
    {
        $handler = $this->portHandler($port, $event);
        if ($handler === null) {
            return;
        }
        if (empty($this->setting['event_object'])) {
            $event === 'receive' ? $handler($this, $fd, $reactor, $bytes) : $handler($this, $fd, $reactor);
            return;
        }
        $object = new Server\Event();
        [$object->fd, $object->reactor_id, $object->dispatch_time, $object->data] = [$fd, $reactor, microtime(true), $bytes];
        $handler($this, $object);
    }

    private function receivedPacket(int $port, string $bytes): void
    {
        $handler = $this->portHandler($port, 'packet');
        if ($handler === null) {
            return;
        }
        ['port' => $from, 'local' => $local, 'length' => $length] = unpack('vport/vlocal/Clength', $bytes);
        $address = substr($bytes, 5, $length);
        $datagram = substr($bytes, 5 + $length);
        if (!empty($this->setting['event_object'])) {
            $object = new Server\Packet();
            [$object->server_socket, $object->server_port, $object->address, $object->port] = [$port, $local, $address, $from];
            [$object->dispatch_time, $object->data] = [microtime(true), $datagram];
            $handler($this, $object);
            return;
        }
        $handler($this, $datagram, ['server_socket' => $port, 'server_port' => $local, 'address' => $address, 'port' => $from, 'dispatch_time' => microtime(true)]);
    }

    private function receivedMessage(int $from, string $bytes): void
    {
        $message = unserialize($bytes);
        if (!empty($this->setting['event_object'])) {
            $object = new Server\PipeMessage();
            [$object->source_worker_id, $object->dispatch_time, $object->data] = [$from, microtime(true), $message];
            $this->call('pipemessage', $this, $object);
            return;
        }
        $this->call('pipemessage', $this, $from, $message);
    }

    /** The client has too much to read, or has read enough. */
    private function changeFlow(int $kind, int $port, int $fd): void
    {
        $handler = $this->portHandler($port, $kind === FULL ? 'bufferfull' : 'bufferempty');
        if ($kind === DRAINED) {
            $this->wake($fd);
        }
        if ($handler !== null) {
            $handler($this, $fd);
        }
    }

    private function wake(int $fd): void
    {
        $waiting = $this->waiting[$fd] ?? [];
        unset($this->waiting[$fd]);
        foreach ($waiting as $id) {
            if (Engine\exists($id)) {
                Engine\resume($id);
            }
        }
    }

    public function send(int|string $fd, string $send_data, int $serverSocket = -1): bool
    {
        if (is_string($fd) && !is_numeric($fd)) {
            return $this->sendto($fd, 0, $send_data, $serverSocket);
        }
        if ($send_data === '') {
            return false;
        }
        $fd = (int) $fd;
        [$item, $own] = $this->handling[Engine\id()] ?? [0, 0];
        $this->unchecked += strlen($send_data);
        $isKnown = $own === $fd || isset($this->open[$fd]);
        if ((!$isKnown || $this->unchecked > UNCHECKED_BYTES) && !$this->awaitRoom($fd)) {
            return false;
        }
        return Engine\server_call(SEND, $item, $fd, 0, $send_data);
    }

    /** Waits until the client reads; false if there is no such connection, or nothing can wait here. */
    private function awaitRoom(int $fd): bool
    {
        $this->unchecked = 0;
        while (($room = Engine\server_query(ROOM, 0, $fd, 0)) === '2') {
            $id = Engine\id();
            $mayWait = ($this->setting['enable_coroutine'] ?? true) && ($this->setting['send_yield'] ?? true);
            if ($id < 0 || !$mayWait || $this->taskworker) {
                return $this->fail(SWOOLE_ERROR_OUTPUT_BUFFER_OVERFLOW);
            }
            $this->waiting[$fd][] = $id;
            if (!Coroutine::yield()) {
                return $this->fail(SWOOLE_ERROR_OUTPUT_BUFFER_OVERFLOW);
            }
        }
        return $room === '1' || $this->fail(SWOOLE_ERROR_SESSION_NOT_EXIST);
    }

    private function fail(int $error): bool
    {
        $this->error = $error;
        return false;
    }

    public function sendto(string $ip, int $port, string $send_data, int $server_socket = -1): bool
    {
        $isPath = str_starts_with($ip, '/');
        if ((!$isPath && filter_var($ip, FILTER_VALIDATE_IP) === false) || $port < 0 || $port > 65535 || strlen($ip) > 255) {
            trigger_error("sendto(): \"$ip\" with port $port is not an address", E_USER_WARNING);
            return false;
        }
        if ($send_data === '' || strlen($send_data) > 65507) {
            return false;
        }
        [$item, , $own] = $this->handling[Engine\id()] ?? [0, 0, -1];
        $from = $server_socket >= 0 ? $server_socket : $own;
        return Engine\server_call(SEND_TO, $item, 0, max($from, 0), pack('vvC', $port, 0, strlen($ip)) . $ip . $send_data);
    }

    public function sendwait(int $conn_fd, string $send_data): bool
    {
        return $this->send($conn_fd, $send_data);
    }

    public function sendfile(int $conn_fd, string $filename, int $offset = 0, int $length = 0): bool
    {
        $file = is_file($filename) ? fopen($filename, 'rb') : false;
        if ($file === false || $offset < 0 || fseek($file, $offset) !== 0) {
            trigger_error("sendfile(): $filename cannot be read", E_USER_WARNING);
            return false;
        }
        $left = $length > 0 ? $length : PHP_INT_MAX;
        $isSent = $this->exist($conn_fd);
        while ($isSent && $left > 0 && ($piece = fread($file, min($left, UNCHECKED_BYTES))) !== false && $piece !== '') {
            $left -= strlen($piece);
            $isSent = $this->send($conn_fd, $piece);
        }
        fclose($file);
        return $isSent;
    }

    public function close(int $fd, bool $reset = false): bool
    {
        if (!$this->isConnected($fd)) {
            return Engine\http_end($fd, '') || $this->fail(SWOOLE_ERROR_SESSION_NOT_EXIST);
        }
        [$item] = $this->handling[Engine\id()] ?? [0];
        return Engine\server_call(CLOSE, $item, $fd, $reset ? 1 : 0);
    }

    private function isConnected(int $fd): bool
    {
        $room = Engine\server_query(ROOM, 0, $fd, 0);
        return $room === '1' || $room === '2';
    }

    public function exist(int $fd): bool
    {
        return $this->isConnected($fd) || Engine\http_is_writable($fd);
    }

    public function exists(int $fd): bool
    {
        return $this->exist($fd);
    }

    public function confirm(int $fd): bool
    {
        // On a request it has no effect.
        return Engine\http_is_writable($fd) || $this->change(CONFIRM, $fd, 0);
    }

    public function pause(int $fd): bool
    {
        return $this->change(PAUSE, $fd, 1);
    }

    public function resume(int $fd): bool
    {
        return $this->change(PAUSE, $fd, 0);
    }

    public function protect(int $fd, bool $is_protected = true): bool
    {
        return Engine\http_is_writable($fd) || $this->change(PROTECT, $fd, (int) $is_protected);
    }

    public function bind(int $fd, int $uid): bool
    {
        $info = $this->connectionInfo($fd);
        if ($info === null || $info['uid'] !== 0 || $uid <= 0) {
            return false;
        }
        return Engine\server_call(BIND, 0, $fd, $uid);
    }

    private function change(int $verb, int $fd, int $value): bool
    {
        return $this->isConnected($fd) ? Engine\server_call($verb, 0, $fd, $value) : $this->fail(SWOOLE_ERROR_SESSION_NOT_EXIST);
    }

    private function connectionInfo(int $fd): ?array
    {
        $info = $fd > 0 ? Engine\server_query(INFO, 0, $fd, 0) : false;
        return $info === false ? null : (json_decode($info, true) ?: null);
    }

    public function getClientInfo(int $fd, int $reactor_id = -1, bool $ignoreError = false): array|false
    {
        $info = $this->connectionInfo($fd);
        if ($info === null || (!$info['is_open'] && !$ignoreError && !isset($this->handling[Engine\id()]))) {
            return $this->httpClientInfo($fd);
        }
        $common = [
            'server_port' => $info['server_port'],
            'server_fd' => $info['port'],
            'socket_fd' => $fd,
            'socket_type' => $this->ports[$info['port']]->type ?? SWOOLE_SOCK_TCP,
            'remote_port' => $info['remote_port'],
            'remote_ip' => $info['remote_ip'],
            'reactor_id' => 0,
            'connect_time' => $info['connect_time'],
            'last_time' => $info['last_recv_time'],
            'last_recv_time' => (float) $info['last_recv_time'],
            'last_send_time' => (float) $info['last_send_time'],
            'close_errno' => 0,
            'recv_queued_bytes' => $info['recv_queued_bytes'],
            'send_queued_bytes' => $info['send_queued_bytes'],
            'worker_id' => $info['worker_id'] ?? $this->worker_id,
        ];
        return $info['uid'] === 0 ? $common : $common + ['uid' => $info['uid']];
    }

    private function httpClientInfo(int $fd): array|false
    {
        $server = Engine\http_server($fd);
        return $server === [] ? false : [
            'server_port' => $server['server_port'],
            'server_fd' => 0,
            'socket_fd' => $fd,
            'socket_type' => SWOOLE_SOCK_TCP,
            'remote_port' => $server['remote_port'],
            'remote_ip' => $server['remote_addr'],
            'reactor_id' => 0,
            'connect_time' => $server['request_time'],
            'last_time' => $server['request_time'],
            'last_recv_time' => $server['request_time_float'],
            'close_errno' => 0,
            'worker_id' => $this->worker_id,
        ];
    }

    public function connection_info(int $fd, int $reactor_id = -1, bool $ignoreError = false): array|false
    {
        return $this->getClientInfo($fd, $reactor_id, $ignoreError);
    }

    public function getClientList(int $start_fd = 0, int $find_count = 10): array|false
    {
        if ($find_count < 1 || $find_count > 100 || $start_fd < 0) {
            return false;
        }
        $list = Engine\server_query(CONNECTIONS, 0, $start_fd, $find_count);
        return $list === false ? false : json_decode($list, true);
    }

    public function connection_list(int $start_fd = 0, int $find_count = 10): array|false
    {
        return $this->getClientList($start_fd, $find_count);
    }

    public function heartbeat(bool $ifCloseConnection = true): array|false
    {
        $list = Engine\server_query(HEARTBEAT, 0, 0, (int) $ifCloseConnection);
        return $list === false ? false : json_decode($list, true);
    }

    public function getLastError(): int
    {
        return $this->error;
    }
}

namespace Swoole\Connection;

use Outboard\Engine\Swoole as Engine;

/** The open connections, which the gateway has: each page of them is a query. */
class Iterator implements \Iterator, \Countable, \ArrayAccess
{
    /** @var list<int> */
    private array $page = [];

    private int $at = 0;

    /** @internal 0: those of all ports; else one more than the port's index */
    public function __construct(private readonly int $port = 0)
    {
    }

    public function rewind(): void
    {
        $this->turn(0);
    }

    private function turn(int $after): void
    {
        $list = Engine\server_query(Engine\CONNECTIONS, $this->port, $after, 1000);
        $this->page = $list === false ? [] : json_decode($list, true);
        $this->at = 0;
    }

    public function valid(): bool
    {
        return isset($this->page[$this->at]);
    }

    public function current(): mixed
    {
        return $this->page[$this->at] ?? null;
    }

    public function key(): mixed
    {
        return $this->at;
    }

    public function next(): void
    {
        $last = $this->page[$this->at] ?? 0;
        if (++$this->at >= count($this->page) && $last > 0) {
            $this->turn($last);
        }
    }

    public function count(): int
    {
        $stats = $this->port === 0 ? Engine\server_query(Engine\STATS, 0, 0, 0) : false;
        return $stats === false ? iterator_count($this) : json_decode($stats, true)['connection_num'];
    }

    public function offsetExists(mixed $offset): bool
    {
        return in_array(Engine\server_query(Engine\ROOM, 0, (int) $offset, 0), ['1', '2'], true);
    }

    public function offsetGet(mixed $offset): mixed
    {
        return $this->offsetExists($offset) ? (int) $offset : false;
    }

    public function offsetSet(mixed $offset, mixed $value): void
    {
        throw new \Swoole\Exception('connections are opened by clients');
    }

    public function offsetUnset(mixed $offset): void
    {
        throw new \Swoole\Exception('use close()');
    }
}
