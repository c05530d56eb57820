<?php

declare(strict_types=1);

/** Why a request has failed: a status, a sentence, and one per field that is not right. */
final class Problem extends RuntimeException implements JsonSerializable
{
    /** @param array<string, string> $fields */
    public function __construct(public readonly int $status, string $sentence, private readonly array $fields = [])
    {
        parent::__construct($sentence);
    }

    public static function method(string $allowed): self
    {
        return new self(405, "Here one can: $allowed.");
    }

    /** @return array<string, mixed> */
    public function jsonSerialize(): array
    {
        return ['problem' => $this->getMessage()] + ($this->fields === [] ? [] : ['fields' => $this->fields]);
    }
}
