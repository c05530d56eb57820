<?php
// Isolation "fork": the kernel boots and answers a page into the void, so that every fork begins with
// classes loaded, expressions compiled and services made; then each request is a fork's.
use Symfony\Component\HttpFoundation\Request;

$boot = require __DIR__ . '/app.php';
$kernel = $boot();
$kernel->handle(Request::create('/'));
Outboard\snapshot();
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
