<?php

declare(strict_types=1);

namespace Outboard\Laravel;

use Illuminate\Database\Connection;

/**
 * Ends the transactions that a request has left open, at Octane's end of a request: the server rolls
 * them back as well, but Laravel counts its own, and the next request would begin inside of one.
 *
 * In config/octane.php: `RequestTerminated::class => [Outboard\Laravel\RollBack::class]`.
 */
final class RollBack
{
    public function handle(object $event): void
    {
        $app = $event->sandbox ?? $event->app ?? null;
        if ($app === null || !$app->resolved('db')) {
            return;
        }
        foreach ($app->make('db')->getConnections() as $connection) {
            if ($connection instanceof Connection && $connection->transactionLevel() > 0) {
                $connection->rollBack(0);
            }
        }
    }
}
