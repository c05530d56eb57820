<?php
// The kernel is reused for all requests of the worker.
use Symfony\Component\HttpFoundation\Request;

$boot = require __DIR__ . '/app.php';
$kernel = $boot();
$handler = static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};
while (Outboard\handle_request($handler)) {
}
