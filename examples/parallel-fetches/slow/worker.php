<?php

/** A backend that needs 300 ms for everything; other requests are handled meanwhile. */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

const SECONDS = 0.3;

Outboard\serve(static function (Request $request): Response {
    Outboard\sleep(SECONDS);
    return Response::json(match (basename($request->path())) {
        'weather' => ['sky' => 'clear', 'celsius' => 17],
        'tides' => ['next high water' => '14:05'],
        'ferries' => ['north' => '15:20', 'south' => '15:45'],
        'news' => ['headline' => 'The harbour light is lit again'],
        default => ['error' => 'unknown'],
    });
});
