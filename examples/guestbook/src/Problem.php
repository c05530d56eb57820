<?php

declare(strict_types=1);

namespace Guestbook;

use RuntimeException;

/** Why a request has failed: a status, a sentence for people, headers. */
final class Problem extends RuntimeException
{
    /** @param list<string> $headers */
    public function __construct(
        public readonly int $status,
        string $message,
        public readonly array $headers = [],
    ) {
        parent::__construct($message);
    }
}
