<?php

declare(strict_types=1);

namespace App;

use Symfony\Contracts\Service\ResetInterface;

/** The events of the present request. Symfony resets it between two, as every service that implements ResetInterface. */
final class Journal implements ResetInterface
{
    /** @var list<string> */
    private array $lines = [];

    private int $requests = 0;

    public function note(string $line): void
    {
        $this->lines[] = $line;
    }

    /** @return list<string> */
    public function lines(): array
    {
        return $this->lines;
    }

    /** Requests that this process has completed. */
    public function requests(): int
    {
        return $this->requests;
    }

    public function reset(): void
    {
        $this->lines = [];
        $this->requests++;
    }
}
