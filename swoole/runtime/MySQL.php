<?php

namespace Swoole\Coroutine;

/** Of the versions before 5, by way of mysqli, whose calls wait without holding the worker. */
class MySQL
{
    use \Outboard\Engine\Swoole\BufferedRows;

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
    use \Outboard\Engine\Swoole\BufferedRows;

    public $id = 0;

    public $affected_rows = 0;

    public $insert_id = 0;

    public $error = '';

    public $errno = 0;

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

namespace Outboard\Engine\Swoole;

/** @internal the rows of a result that the program has not fetched yet */
trait BufferedRows
{
    private array $rows = [];

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
}
