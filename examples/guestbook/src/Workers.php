<?php

declare(strict_types=1);

namespace Guestbook;

/**
 * The PHP processes that have handled requests, and how many.
 *
 * PHP forgets everything after a request, so each process counts in a small file of its own. The
 * file is named after the process and its start, because Linux uses process ids again.
 */
final readonly class Workers
{
    public function __construct(private string $directory)
    {
    }

    public function count(): void
    {
        $pid = getmypid();
        $file = "{$this->directory}/$pid-" . self::startOf($pid);
        file_put_contents($file, 1 + (int) @file_get_contents($file));
    }

    /** @return array<int, int> requests by pid, of the processes that still live */
    public function all(): array
    {
        $requests = [];
        foreach (glob($this->directory . '/*') as $file) {
            [$pid, $start] = explode('-', basename($file), 2);
            if (self::startOf((int) $pid) === $start) {
                $requests[(int) $pid] = (int) file_get_contents($file);
            } else {
                @unlink($file);
            }
        }
        ksort($requests);
        return $requests;
    }

    /** Field 22 of /proc/PID/stat, proc(5); '' when there is no such process. */
    private static function startOf(int $pid): string
    {
        $stat = (string) @file_get_contents("/proc/$pid/stat");
        return explode(' ', (string) strrchr($stat, ')'))[20] ?? '';
    }
}
