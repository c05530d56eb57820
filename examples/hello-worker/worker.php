<?php

/** The smallest worker: what is above serve() runs once per worker, the handler once per request. */

declare(strict_types=1);

use Outboard\Request;
use Outboard\Response;

$booted = time();
$handled = 0;

Outboard\serve(static function (Request $request) use ($booted, &$handled): Response {
    $handled++;
    $name = $request->query('name');
    $facts = [
        'hello' => is_string($name) && $name !== '' ? $name : 'world',
        'worker' => getmypid(),
        'booted' => date(DATE_ATOM, $booted),
        'handled' => $handled,
    ];
    return match ($request->path()) {
        '/' => Response::html(page($facts)),
        '/facts' => Response::json($facts),
        default => Response::text("There is nothing at {$request->path()}.\n", 404),
    };
});

/** @param array<string, string|int|false> $facts */
function page(array $facts): string
{
    $rows = '';
    foreach ($facts as $name => $value) {
        $rows .= "<dt>$name<dd>" . htmlspecialchars((string) $value);
    }
    return <<<HTML
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>Hello from a worker</title>
        <link rel="stylesheet" href="/style.css">
        <main>
          <h1>Hello from a worker</h1>
          <dl>$rows</dl>
          <p>Load the page again: the script stays, so <em>handled</em> grows and <em>booted</em> does not change.</p>
        </main>
        </html>
        HTML;
}
