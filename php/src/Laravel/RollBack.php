<?php

declare(strict_types=1);

namespace Outboard\Laravel;

use Illuminate\Database\Connection;

/**
 * Rolls back open transactions at Octane's end of a request: the server does so as well, but Laravel counts
 * them itself, and the next request would start inside of one.
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
