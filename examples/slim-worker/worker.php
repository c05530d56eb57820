<?php

/** A Slim 3 application (Debian's php-slim and php-slim-psr7) that boots once per worker. */

declare(strict_types=1);

require_once 'Slim/autoload.php';
require_once 'Slim/Psr7/autoload.php';
require __DIR__ . '/../../php/autoload.php';
require __DIR__ . '/src/Harbours.php';

use Psr\Http\Message\ResponseInterface as Response;
use Psr\Http\Message\ServerRequestInterface as Request;
use Slim\App;
use Slim\Psr7\Factory\ResponseFactory;

$app = new App(['settings' => ['displayErrorDetails' => false]]);
$harbours = new Harbours();
$responses = new ResponseFactory();

$app->add(fn (Request $request, Response $response, callable $next): Response => $next($request, $response)
    ->withHeader('X-Worker', (string) getmypid()));

$app->get('/', function (Request $request, Response $response) use ($harbours): Response {
    $response->getBody()->write($harbours->page());
    return $response->withHeader('Content-Type', 'text/html; charset=utf-8');
});
$app->get('/harbours/{name}', function (Request $request, Response $response, array $path) use ($harbours): Response {
    $harbour = $harbours->find($path['name']);
    $response->getBody()->write(json_encode($harbour ?? ['problem' => 'no such harbour'], JSON_THROW_ON_ERROR));
    return $response->withStatus($harbour === null ? 404 : 200)->withHeader('Content-Type', 'application/json');
});
$app->post('/sum', function (Request $request, Response $response): Response {
    $numbers = $request->getParsedBody()['numbers'] ?? [];
    $response->getBody()->write((string) array_sum(array_map(intval(...), (array) $numbers)));
    return $response->withHeader('Content-Type', 'text/plain');
});

Outboard\Psr\Server::run(static fn (Request $request): Response => $app->process($request, $responses->createResponse()));
