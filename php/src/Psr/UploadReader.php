<?php

declare(strict_types=1);

namespace Outboard\Psr;

use Psr\Http\Message\UploadedFileInterface;

/** Converts $_FILES, which nests by property, into the tree that PSR-7 requires. */
final class UploadReader
{
    public function __construct(private readonly Factories $factories)
    {
    }

    /**
     * @param array<array-key, mixed> $files
     * @return array<array-key, mixed> uploaded files, nested like their names
     */
    public function read(array $files): array
    {
        $tree = [];
        foreach ($files as $name => $entry) {
            if (is_array($entry) && array_key_exists('tmp_name', $entry)) {
                $tree[$name] = $this->branch($entry);
            }
        }
        return $tree;
    }

    /**
     * @param array<array-key, mixed> $entry
     * @return UploadedFileInterface|array<array-key, mixed>
     */
    private function branch(array $entry): UploadedFileInterface|array
    {
        if (!is_array($entry['tmp_name'])) {
            return $this->file($entry);
        }
        $branch = [];
        foreach (array_keys($entry['tmp_name']) as $key) {
            $branch[$key] = $this->branch(array_map(
                static fn (mixed $facts): mixed => is_array($facts) ? $facts[$key] ?? null : null,
                $entry,
            ));
        }
        return $branch;
    }

    /** @param array<array-key, mixed> $entry */
    private function file(array $entry): UploadedFileInterface
    {
        $path = $entry['tmp_name'] ?? '';
        $error = is_int($entry['error'] ?? null) ? $entry['error'] : UPLOAD_ERR_OK;
        $stream = $error === UPLOAD_ERR_OK && is_string($path) && $path !== ''
            ? $this->factories->streams->createStreamFromFile($path)
            : $this->factories->streams->createStream();
        $size = is_int($entry['size'] ?? null) ? $entry['size'] : null;
        $name = is_string($entry['name'] ?? null) ? $entry['name'] : null;
        $type = is_string($entry['type'] ?? null) ? $entry['type'] : null;
        // In PSR-17 1.0 these are nullable by their defaults, `int $size = null`.
        // @mago-expect analysis:possibly-null-argument(3)
        return $this->factories->files->createUploadedFile($stream, $size, $error, $name, $type);
    }
}
