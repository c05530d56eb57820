<?php

declare(strict_types=1);

namespace Outboard\Psr;

use Outboard\Output;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;

/** Sends a PSR-7 response, with at most one piece of its body in memory. */
final class Emitter
{
    private const PIECE_BYTES = 64 * 1024;

    /** @param bool $withBody false for a response to HEAD */
    public function emit(ResponseInterface $response, Output $output, bool $withBody = true): void
    {
        $status = $response->getStatusCode();
        $headers = [];
        foreach ($response->getHeaders() as $name => $values) {
            $headers[$name] = array_values($values);
        }
        $output->head($status, $response->getReasonPhrase(), $headers);
        $body = $response->getBody();
        // RFC 9110, 15.3.5 and 15.4.5: they have no body.
        if ($withBody && $status !== 204 && $status !== 304) {
            $this->send($body, $output);
        }
        $body->close();
    }

    /** A body of unknown size is produced while it is read: each piece is sent at once. */
    private function send(StreamInterface $body, Output $output): void
    {
        if ($body->isSeekable()) {
            $body->rewind();
        }
        $live = $body->getSize() === null;
        while (!$body->eof()) {
            $output->write($body->read(self::PIECE_BYTES));
            if ($live && !$output->flush()) {
                return;
            }
        }
    }
}
