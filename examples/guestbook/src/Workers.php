<?php

declare(strict_types=1);

namespace Guestbook;

/**
 * Which PHP processes have answered, and how often.
 *
 * PHP forgets everything after a request, so each process counts in a small file of its own.
 */
final readonly class Workers
{
    public function __construct(private string $folder)
    {
    }

    public function count(): void
    {
        $file = $this->folder . '/' . getmypid();
        file_put_contents($file, 1 + $this->read($file));
    }

    /** @return array<int, int> requests by pid, of the processes that still live */
    public function all(): array
    {
        $requests = [];
        foreach (glob($this->folder . '/*') as $file) {
            $pid = (int) basename($file);
            if (file_exists("/proc/$pid")) {
                $requests[$pid] = $this->read($file);
            } else {
                @unlink($file);
            }
        }
        ksort($requests);
        return $requests;
    }

    private function read(string $file): int
    {
        // A file that is older than its process was written by an earlier one of the same pid.
        $started = @filemtime('/proc/' . basename($file));
        $written = @filemtime($file);
        return $written === false || $written < $started ? 0 : (int) file_get_contents($file);
    }
}
