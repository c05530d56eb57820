<?php

namespace Swoole\Coroutine;

/** Of the versions before 5, by way of mysqli, whose calls wait without holding the worker. */
class MySQL
{
    public $serverInfo = null;

    public $sock = -1;

    public $connected = false;

    public $connect_error = '';

    public $connect_errno = 0;

    public $affected_rows = 0;

    public $insert_id = 0;

    public $error = '';

    public $errno = 0;

    private ?\mysqli $link = null;

    private bool $deferred = false;

    private ?Channel $result = null;

    private array $rows = [];

    /** @var list<\mysqli_stmt> */
    private array $unused = [];

    public function __construct()
    {
    }

    /** @internal closes it before the next query: now another coroutine may use the connection */
    public function closeLater(\mysqli_stmt $statement): void
    {
        $this->unused[] = $statement;
    }

    public function getuid(): int
    {
        return \Swoole\Coroutine::getCid();
    }

    public function connect(?array $server_config = null): bool
    {
        $this->serverInfo = $server_config ??= $this->serverInfo ?? [];
        $this->close();
        $link = mysqli_init();
        $link->options(MYSQLI_OPT_CONNECT_TIMEOUT, max(1, (int) ceil((float) ($server_config['timeout'] ?? 10))));
        if (!empty($server_config['strict_type'])) {
            $link->options(MYSQLI_OPT_INT_AND_FLOAT_NATIVE, 1);
        }
        $host = (string) ($server_config['host'] ?? '127.0.0.1');
        $socket = $server_config['unix_socket'] ?? null;
        if (str_starts_with($host, 'unix:')) {
            $socket = '/' . ltrim(substr($host, 5), '/');
        }
        try {
            // A host of its own and a socket: mysqli takes the socket for "localhost".
            $connected = @$link->real_connect(
                $socket === null ? $host : 'localhost',
                (string) ($server_config['user'] ?? ''),
                (string) ($server_config['password'] ?? ''),
                (string) ($server_config['database'] ?? ''),
                (int) ($server_config['port'] ?? 3306),
                $socket,
            );
            $connected && isset($server_config['charset']) && $link->set_charset($server_config['charset']);
        } catch (\mysqli_sql_exception $failed) {
            $connected = false;
            $this->connect_errno = $failed->getCode();
            $this->connect_error = $failed->getMessage();
        }
        if (!$connected) {
            $this->connect_errno = $this->connect_errno ?: $link->connect_errno;
            $this->connect_error = $this->connect_error ?: (string) $link->connect_error;
            return false;
        }
        $this->connect_errno = 0;
        $this->connect_error = '';
        $this->link = $link;
        $this->sock = $link->thread_id;
        return $this->connected = true;
    }

    public function query(string $sql, float $timeout = 0): array|bool
    {
        return $this->perform(function () use ($sql): array|bool {
            $result = $this->link->query($sql);
            return $result instanceof \mysqli_result ? $this->rows = $result->fetch_all(MYSQLI_ASSOC) : $result;
        });
    }

    public function prepare(string $query, float $timeout = 0): MySQL\Statement|bool
    {
        return $this->perform(function () use ($query): MySQL\Statement|false {
            $statement = $this->link->prepare($query);
            return $statement === false ? false : new MySQL\Statement($statement, $this);
        });
    }

    public function begin(float $timeout = 0): bool
    {
        return $this->perform(fn (): bool => $this->link->begin_transaction());
    }

    public function commit(float $timeout = 0): bool
    {
        return $this->perform(fn (): bool => $this->link->commit());
    }

    public function rollback(float $timeout = 0): bool
    {
        return $this->perform(fn (): bool => $this->link->rollback());
    }

    public function fetch(float $timeout = 0): array|false|null
    {
        return array_shift($this->rows);
    }

    public function fetchAll(float $timeout = 0): array|false
    {
        $rows = $this->rows;
        $this->rows = [];
        return $rows;
    }

    public function nextResult(float $timeout = 0): ?bool
    {
        return $this->link !== null && $this->link->more_results() ? $this->link->next_result() : null;
    }

    public function escape(string $string, int $flags = 0): string|false
    {
        return $this->link === null ? false : $this->link->real_escape_string($string);
    }

    public function setDefer(bool $defer = true): bool
    {
        $this->deferred = $defer;
        return true;
    }

    public function getDefer(): bool
    {
        return $this->deferred;
    }

    public function recv(float $timeout = 0): mixed
    {
        $result = $this->result?->pop() ?? false;
        $this->result = null;
        return $result;
    }

    public function close(): bool
    {
        $was = $this->link !== null;
        $this->unused = [];
        $this->link?->close();
        $this->link = null;
        $this->connected = false;
        $this->sock = -1;
        return $was;
    }

    private function perform(\Closure $call): mixed
    {
        if ($this->link === null) {
            $this->errno = SWOOLE_MYSQLND_CR_CONNECTION_ERROR;
            $this->error = 'SQLSTATE[HY000] [2006] MySQL server is not connected';
            return false;
        }
        if (!$this->deferred) {
            return $this->attempt($call);
        }
        $this->result = new Channel(1);
        \Swoole\Coroutine::create(fn (): bool => $this->result->push($this->attempt($call)));
        return true;
    }

    private function attempt(\Closure $call): mixed
    {
        try {
            $this->unused = [];
            $result = $call();
            $this->errno = $this->link->errno;
            $this->error = $this->link->error;
        } catch (\mysqli_sql_exception $failed) {
            $this->errno = $failed->getCode();
            $this->error = $failed->getMessage();
            $result = false;
        }
        if ($this->errno === 2006 || $this->errno === 2013) {
            $this->connected = false;
            return false;
        }
        $this->affected_rows = max(0, (int) $this->link->affected_rows);
        $this->insert_id = (int) $this->link->insert_id;
        return $result;
    }
}

namespace Swoole\Coroutine\MySQL;

class Exception extends \Swoole\Exception
{
}

class Statement
{
    public $id = 0;

    public $affected_rows = 0;

    public $insert_id = 0;

    public $error = '';

    public $errno = 0;

    private array $rows = [];

    /** @internal */
    public function __construct(private readonly \mysqli_stmt $statement, private readonly \Swoole\Coroutine\MySQL $connection)
    {
        $this->id = $statement->id;
    }

    public function __destruct()
    {
        $this->connection->closeLater($this->statement);
    }

    public function execute(array $params = [], float $timeout = 0): array|bool
    {
        try {
            $done = $this->statement->execute($params === [] ? null : array_values($params));
            $result = $done ? $this->statement->get_result() : false;
            $this->errno = $this->statement->errno;
            $this->error = $this->statement->error;
        } catch (\mysqli_sql_exception $failed) {
            $this->errno = $failed->getCode();
            $this->error = $failed->getMessage();
            return false;
        }
        $this->affected_rows = max(0, (int) $this->statement->affected_rows);
        $this->insert_id = (int) $this->statement->insert_id;
        return $result === false ? $done : $this->rows = $result->fetch_all(MYSQLI_ASSOC);
    }

    public function fetch(float $timeout = 0): array|false|null
    {
        return array_shift($this->rows);
    }

    public function fetchAll(float $timeout = 0): array|false
    {
        $rows = $this->rows;
        $this->rows = [];
        return $rows;
    }

    public function nextResult(float $timeout = 0): ?bool
    {
        return $this->statement->more_results() ? $this->statement->next_result() : null;
    }

    public function recv(float $timeout = 0): array|false
    {
        return $this->fetchAll();
    }

    public function close(): void
    {
        $this->statement->close();
    }
}

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

/** Of the versions before 5, by way of the extension pgsql. */
class PostgreSQL
{
    public $error = null;

    public $errCode = 0;

    public $resultStatus = 0;

    public $resultDiag = null;

    public $notices = null;

    private mixed $link = null;

    public function connect(string $conninfo, float $timeout = 2): bool
    {
        $link = @pg_connect($conninfo, PGSQL_CONNECT_FORCE_NEW);
        $this->link = $link ?: null;
        $this->error = $link ? null : (error_get_last()['message'] ?? 'no connection');
        return $this->link !== null;
    }

    public function query(string $query, float $timeout = 0): PostgreSQLStatement|false
    {
        $result = $this->link === null ? false : @pg_query($this->link, $query);
        $this->error = $result ? null : ($this->link === null ? 'no connection' : pg_last_error($this->link));
        return $result ? new PostgreSQLStatement($result) : false;
    }

    public function prepare(string $query, float $timeout = 0): PostgreSQLStatement|false
    {
        static $number = 0;
        $name = 'swoole_' . ++$number;
        $result = $this->link === null ? false : @pg_prepare($this->link, $name, $query);
        $this->error = $result ? null : ($this->link === null ? 'no connection' : pg_last_error($this->link));
        return $result ? new PostgreSQLStatement(null, $this->link, $name) : false;
    }

    public function escape(string $string): string|false
    {
        return $this->link === null ? false : pg_escape_string($this->link, $string);
    }

    public function escapeLiteral(string $string): string|false
    {
        return $this->link === null ? false : pg_escape_literal($this->link, $string);
    }

    public function escapeIdentifier(string $string): string|false
    {
        return $this->link === null ? false : pg_escape_identifier($this->link, $string);
    }

    public function metaData(string $table_name): array|false
    {
        return $this->link === null ? false : pg_meta_data($this->link, $table_name);
    }
}

class PostgreSQLStatement
{
    public $error = null;

    public $errCode = 0;

    public $resultStatus = 0;

    /** @internal */
    public function __construct(private mixed $result, private readonly mixed $link = null, private readonly string $name = '')
    {
    }

    public function execute(array $params = [], float $timeout = 0): bool
    {
        $this->result = @pg_execute($this->link, $this->name, $params);
        $this->error = $this->result ? null : pg_last_error($this->link);
        return (bool) $this->result;
    }

    public function fetchAll(int $result_type = PGSQL_ASSOC): array|false
    {
        return $this->result ? pg_fetch_all($this->result, $result_type) : false;
    }

    public function fetchAssoc(?int $row = null): array|false
    {
        return $this->result ? pg_fetch_assoc($this->result, $row) : false;
    }

    public function fetchArray(?int $row = null, int $result_type = PGSQL_BOTH): array|false
    {
        return $this->result ? pg_fetch_array($this->result, $row, $result_type) : false;
    }

    public function fetchRow(?int $row = null, int $result_type = PGSQL_NUM): array|false
    {
        return $this->result ? pg_fetch_row($this->result, $row) : false;
    }

    public function fetchObject(?int $row = null, ?string $class_name = null, array $ctor_params = []): object|false
    {
        return $this->result ? pg_fetch_object($this->result, $row, $class_name ?? \stdClass::class, $ctor_params) : false;
    }

    public function affectedRows(): int
    {
        return $this->result ? pg_affected_rows($this->result) : 0;
    }

    public function numRows(): int
    {
        return $this->result ? pg_num_rows($this->result) : 0;
    }

    public function fieldCount(): int
    {
        return $this->result ? pg_num_fields($this->result) : 0;
    }
}

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
