<?php
// The front controller of classic mode and php-fpm.
use Symfony\Component\HttpFoundation\Request;

$boot = require dirname(__DIR__) . '/app.php';
$kernel = $boot();
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
