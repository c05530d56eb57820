<?php

namespace Swoole;

/** As many connections as its size, made when they are wanted; get() waits for one that is put back. */
class ConnectionPool
{
    public const DEFAULT_SIZE = 64;

    protected ?Coroutine\Channel $pool;

    /** @var callable */
    protected $constructor;

    protected int $size;

    protected int $num = 0;

    protected ?string $proxy;

    public function __construct(callable $constructor, int $size = self::DEFAULT_SIZE, ?string $proxy = null)
    {
        $this->pool = new Coroutine\Channel($this->size = $size);
        $this->constructor = $constructor;
        $this->proxy = $proxy;
    }

    public function fill(): void
    {
        while ($this->size > $this->num) {
            $this->make();
        }
    }

    public function get(float $timeout = -1): mixed
    {
        if ($this->pool === null) {
            throw new \RuntimeException('Pool has been closed');
        }
        if ($this->pool->isEmpty() && $this->num < $this->size) {
            $this->make();
        }
        return $this->pool->pop($timeout);
    }

    /** Null in place of a connection that is broken: another one is made. */
    public function put(mixed $connection): void
    {
        if ($this->pool === null) {
            return;
        }
        if ($connection !== null) {
            $this->pool->push($connection);
        } else {
            $this->num--;
            $this->make();
        }
    }

    public function close(): void
    {
        $this->pool?->close();
        $this->pool = null;
        $this->num = 0;
    }

    protected function make(): void
    {
        $this->num++;
        try {
            $connection = $this->proxy === null ? ($this->constructor)() : new $this->proxy($this->constructor);
        } catch (\Throwable $failed) {
            $this->num--;
            throw $failed;
        }
        $this->put($connection);
    }
}

namespace Swoole\Database;

/** The part that all configurations share: withX() sets and getX() gives. */
abstract class Config
{
    protected array $values = [];

    public function __call(string $name, array $arguments): mixed
    {
        $key = lcfirst(preg_replace('/^(with|get|has|is)/', '', $name));
        if (str_starts_with($name, 'with')) {
            $this->values[$key] = $arguments[0] ?? null;
            return $this;
        }
        return str_starts_with($name, 'has') ? !empty($this->values[$key]) : $this->values[$key] ?? null;
    }
}

class PDOConfig extends Config
{
    public const DRIVER_MYSQL = 'mysql';

    protected array $values = [
        'driver' => 'mysql', 'host' => '127.0.0.1', 'port' => 3306, 'unixSocket' => null, 'dbname' => 'test', 'charset' => 'utf8mb4',
        'username' => 'root', 'password' => 'root', 'options' => [],
    ];
}

class MysqliConfig extends Config
{
    protected array $values = [
        'host' => '127.0.0.1', 'port' => 3306, 'unixSocket' => null, 'dbname' => 'test', 'charset' => 'utf8mb4',
        'username' => 'root', 'password' => 'root', 'options' => [],
    ];
}

class RedisConfig extends Config
{
    protected array $values = [
        'host' => '127.0.0.1', 'port' => 6379, 'timeout' => 0.0, 'reserved' => '', 'retryInterval' => 0, 'readTimeout' => 0.0,
        'auth' => '', 'dbIndex' => 0, 'options' => [],
    ];

    public function withDbIndex(int $index): static
    {
        $this->values['dbIndex'] = $index;
        return $this;
    }
}

class PDOPool extends \Swoole\ConnectionPool
{
    public function __construct(protected PDOConfig $config, int $size = self::DEFAULT_SIZE)
    {
        parent::__construct(function (): \PDO {
            $config = $this->config;
            $driver = $config->getDriver();
            $place = $config->getUnixSocket() ? "unix_socket={$config->getUnixSocket()}" : "host={$config->getHost()};port={$config->getPort()}";
            $dsn = $driver === 'sqlite' ? 'sqlite:' . $config->getDbname() : "$driver:$place;dbname={$config->getDbname()}" . ($driver === 'mysql' ? ";charset={$config->getCharset()}" : '');
            return new \PDO($dsn, $config->getUsername(), $config->getPassword(), $config->getOptions());
        }, $size);
    }
}

class MysqliException extends \Exception
{
}

class MysqliPool extends \Swoole\ConnectionPool
{
    public function __construct(protected MysqliConfig $config, int $size = self::DEFAULT_SIZE)
    {
        parent::__construct(function (): \mysqli {
            $config = $this->config;
            $mysqli = new \mysqli();
            foreach ($config->getOptions() as $option => $value) {
                $mysqli->options($option, $value);
            }
            $mysqli->real_connect(
                $config->getUnixSocket() ? 'localhost' : $config->getHost(), $config->getUsername(), $config->getPassword(), $config->getDbname(),
                (int) $config->getPort(), $config->getUnixSocket() ?: null,
            );
            $mysqli->set_charset($config->getCharset());
            return $mysqli;
        }, $size);
    }
}

class RedisPool extends \Swoole\ConnectionPool
{
    public function __construct(protected RedisConfig $config, int $size = self::DEFAULT_SIZE)
    {
        parent::__construct(function (): \Redis {
            $config = $this->config;
            $redis = new \Redis();
            $redis->connect($config->getHost(), str_starts_with($config->getHost(), '/') ? -1 : (int) $config->getPort(), (float) $config->getTimeout());
            $config->getAuth() ? $redis->auth($config->getAuth()) : null;
            $config->getDbIndex() ? $redis->select($config->getDbIndex()) : null;
            foreach ($config->getOptions() as $option => $value) {
                $redis->setOption($option, $value);
            }
            return $redis;
        }, $size);
    }
}
