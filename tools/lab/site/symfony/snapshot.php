<?php
// The kernel boots and renders a page that is discarded, so that every request starts
// with loaded classes, compiled expressions and created services.
use Symfony\Component\HttpFoundation\Request;

$boot = require __DIR__ . '/app.php';
$kernel = $boot();
$kernel->handle(Request::create('/'));
Outboard\snapshot();
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
