<?php

/** A worker script: code above serve() runs once per worker, the handler once per request. */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

require __DIR__ . '/src/Page.php';

$booted = date(DATE_ATOM);

Outboard\serve(static function (Request $request) use ($booted): Response {
    return match ($request->path()) {
        '/' => Response::html(Page::of('{{name}}', "This worker has been running since $booted.")),
        '/facts' => Response::json(['worker' => getmypid(), 'booted' => $booted]),
        default => Response::html(Page::of('Not found', $request->path()), 404),
    };
});
