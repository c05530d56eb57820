<?php

declare(strict_types=1);

namespace Outboard\Session;

use Outboard\HostRecords;
use Outboard\Records;

/**
 * Sessions in the entity store: session_set_save_handler(new Outboard\Session\Handler()).
 *
 * One request at a time has a session, as with PHP's files; waiting for it suspends only the coroutine. A
 * session expires when it was unused for session.gc_maxlifetime.
 */
final class Handler implements \SessionHandlerInterface, \SessionUpdateTimestampHandlerInterface
{
    /** Longer than any regular request. */
    private const LEASE = 60.0;

    private readonly Records $records;

    private ?\Closure $unlock = null;

    public function __construct(
        ?Records $records = null,
        private readonly string $prefix = 'session:',
        private readonly float $wait = 10.0,
    ) {
        $this->records = $records ?? new HostRecords();
    }

    public function open(string $path, string $name): bool
    {
        return true;
    }

    public function close(): bool
    {
        if ($this->unlock !== null) {
            ($this->unlock)();
            $this->unlock = null;
        }
        return true;
    }

    public function read(string $id): string|false
    {
        $this->unlock ??= $this->records->lock("$this->prefix$id:lock", self::LEASE, $this->wait);
        return $this->unlock === null ? false : $this->value($id) ?? '';
    }

    public function write(string $id, string $data): bool
    {
        $this->records->putMany([$this->prefix . $id => $data], (int) ini_get('session.gc_maxlifetime'));
        return true;
    }

    public function destroy(string $id): bool
    {
        $this->records->delete($this->prefix . $id);
        return true;
    }

    public function gc(int $max_lifetime): int|false
    {
        return 0;
    }

    public function validateId(string $id): bool
    {
        return $this->value($id) !== null;
    }

    public function updateTimestamp(string $id, string $data): bool
    {
        return $this->write($id, $data);
    }

    private function value(string $id): ?string
    {
        return $this->records->getMany([$this->prefix . $id])[$this->prefix . $id] ?? null;
    }
}
