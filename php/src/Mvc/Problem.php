<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** Ends an action with a status, and a message for the client. */
final class Problem extends \RuntimeException
{
    /**
     * @param int $code for programs; 0: the status
     * @param array<string, string> $fields the error of each field of the input
     * @param array<string, string> $headers
     */
    public function __construct(
        public readonly int $status,
        string $message,
        int $code = 0,
        public readonly array $fields = [],
        public readonly array $headers = [],
    ) {
        parent::__construct($message, $code ?: $status);
    }
}
