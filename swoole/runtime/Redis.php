<?php

namespace Swoole\Coroutine;

/** Of the versions before 5, by way of the extension redis. */
class Redis
{
    public $host = '';

    public $port = 0;

    public $setting = [];

    public $sock = -1;

    public $connected = false;

    public $errType = 0;

    public $errCode = 0;

    public $errMsg = '';

    private ?\Redis $redis = null;

    public function __construct(array $config = [])
    {
        $this->setting = $config + ['connect_timeout' => 1, 'timeout' => 0, 'serialize' => false, 'reconnect' => 1];
    }

    public function setOptions(array $options): bool
    {
        $this->setting = $options + $this->setting;
        return true;
    }

    public function connect(string $host, int $port = 6379, bool $serialize = false): bool
    {
        $this->host = $host;
        $this->port = $port;
        $redis = new \Redis();
        try {
            $path = str_starts_with($host, 'unix:') ? '/' . ltrim(substr($host, 5), '/') : $host;
            $redis->connect($path, $path === $host ? $port : -1, (float) $this->setting['connect_timeout'], null, 0, max(0.0, (float) $this->setting['timeout']));
            $serialize || $this->setting['serialize'] ? $redis->setOption(\Redis::OPT_SERIALIZER, \Redis::SERIALIZER_PHP) : null;
            empty($this->setting['password']) || $redis->auth($this->setting['password']);
            empty($this->setting['database']) || $redis->select((int) $this->setting['database']);
        } catch (\RedisException $failed) {
            return $this->failed($failed);
        }
        $this->redis = $redis;
        return $this->connected = true;
    }

    public function close(): bool
    {
        $was = $this->connected;
        $this->redis?->close();
        $this->redis = null;
        $this->connected = false;
        return $was;
    }

    public function getAuth(): mixed
    {
        return $this->setting['password'] ?? false;
    }

    public function getDBNum(): int
    {
        return (int) ($this->setting['database'] ?? 0);
    }

    public function setDefer(bool $defer): bool
    {
        return false;
    }

    public function getDefer(): bool
    {
        return false;
    }

    public function request(array $params): mixed
    {
        return $this->__call('rawCommand', $params);
    }

    public function __call(string $method, array $arguments): mixed
    {
        if ($this->redis === null) {
            if ($this->host === '' || !$this->connect($this->host, $this->port)) {
                $this->errCode = SWOOLE_REDIS_ERR_CLOSED;
                $this->errMsg = 'The connection is closed';
                return false;
            }
        }
        try {
            $result = $this->redis->$method(...$arguments);
            $this->errCode = 0;
            $this->errMsg = '';
            return $result;
        } catch (\RedisException $failed) {
            return $this->failed($failed);
        }
    }

    private function failed(\RedisException $failed): bool
    {
        $this->errType = SWOOLE_REDIS_ERR_IO;
        $this->errCode = $failed->getCode() ?: 1;
        $this->errMsg = $failed->getMessage();
        $this->redis = null;
        return $this->connected = false;
    }
}
