<?php

declare(strict_types=1);

namespace Outboard;

/** Responds with header() and echo, which every PHP server supports. */
final class SapiOutput implements Output
{
    public function head(int $status, string $reason, iterable $headers): void
    {
        foreach ($headers as $name => $values) {
            // The session's cookie must survive; other fields of the handler replace existing ones.
            $replace = strcasecmp((string) $name, 'Set-Cookie') !== 0;
            foreach ($values as $value) {
                header("$name: $value", $replace);
                $replace = false;
            }
        }
        if ($reason === '') {
            http_response_code($status);
        } else {
            header("HTTP/1.1 $status $reason", true, $status);
        }
    }

    public function write(string $piece): void
    {
        echo $piece;
    }

    public function flush(): bool
    {
        while (ob_get_level() > 0 && @ob_end_flush()) {
            continue;
        }
        flush();
        return connection_aborted() === 0;
    }
}
