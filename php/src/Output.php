<?php

declare(strict_types=1);

namespace Outboard;

/** Sends one response: the head first, then pieces of the body. */
interface Output
{
    /**
     * Sets the status and the header fields. An empty reason means the standard one.
     *
     * @param iterable<array-key, list<string>> $headers values by name
     */
    public function head(int $status, string $reason, iterable $headers): void;

    /** Adds a piece of the body; the server may buffer it. */
    public function write(string $piece): void;

    /** Sends the buffered output. False if the client has disconnected. */
    public function flush(): bool;
}
