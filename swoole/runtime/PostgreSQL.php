<?php

namespace Swoole\Coroutine;

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
