<?php

declare(strict_types=1);

namespace Outboard\Mvc;

/** Ends an action with a status, and a message that is meant for the client. */
final class Problem extends \RuntimeException
{
    /**
     * @param int $code for programs; the status when it is 0
     * @param array<string, string> $fields what is wrong with each field of the input
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
