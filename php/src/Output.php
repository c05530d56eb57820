<?php

declare(strict_types=1);

namespace Outboard;

/** The way of one answer: its head first, then pieces of its body. */
interface Output
{
    /**
     * Sets the status and the header fields. An empty reason stands for the usual one.
     *
     * @param iterable<array-key, list<string>> $headers values by name
     */
    public function head(int $status, string $reason, iterable $headers): void;

    /** Hands over a piece of the body; the server may wait for more before it sends. */
    public function write(string $piece): void;

    /** Sends what there is. False when nobody reads any more. */
    public function flush(): bool;
}
