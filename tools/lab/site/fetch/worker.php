<?php
// /fetch: the gateway requests the backend. /curl.php: the script of php-fpm, unchanged.
require __DIR__ . '/page.php';

Outboard\serve(static fn (Outboard\Request $request) => match ($request->path()) {
    '/fetch' => Outboard\fetch('http://@BACKEND@/' . $request->query('latency'))->body,
    '/curl.php' => page_by_curl($request->query('latency')),
    default => 'ok',
});
