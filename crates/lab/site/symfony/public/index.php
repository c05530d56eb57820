<?php
// One front controller for classic mode, php-fpm and isolation "fork", which forks at snapshot().
use Symfony\Component\HttpFoundation\Request;

$boot = require dirname(__DIR__) . '/app.php';
$kernel = $boot();
if (function_exists('Outboard\snapshot')) {
    Outboard\snapshot();
}
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
