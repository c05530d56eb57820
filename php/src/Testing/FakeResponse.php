<?php

declare(strict_types=1);

namespace Outboard\Testing;

use Outboard\Output;

/** A response, recorded piece by piece. */
final class FakeResponse implements Output
{
    public int $status = 200;

    public string $reason = '';

    /** @var array<string, list<string>> by lower-case name */
    public array $headers = [];

    /** @var list<string> the output, cut at each flush */
    public array $pieces = [];

    private string $waiting = '';

    /** @param int $reads flushes until the client disconnects */
    public function __construct(private int $reads = PHP_INT_MAX)
    {
    }

    public function head(int $status, string $reason, iterable $headers): void
    {
        $this->status = $status;
        $this->reason = $reason;
        foreach ($headers as $name => $values) {
            $name = strtolower((string) $name);
            $this->headers[$name] = [...$this->headers[$name] ?? [], ...$values];
        }
    }

    public function write(string $piece): void
    {
        $this->waiting .= $piece;
    }

    public function flush(): bool
    {
        if ($this->waiting !== '') {
            $this->pieces[] = $this->waiting;
            $this->waiting = '';
        }
        return --$this->reads > 0;
    }

    public function body(): string
    {
        return implode('', $this->pieces) . $this->waiting;
    }

    /** The values of a header, joined by commas; null when it was not sent. */
    public function header(string $name): ?string
    {
        $values = $this->headers[strtolower($name)] ?? null;
        return $values === null ? null : implode(', ', $values);
    }
}
