<?php

/** The demonstration of the MVC: modules, controllers, views. What is here runs once per worker. */

declare(strict_types=1);

use demo\model\Board;
use Outboard\Container;
use Outboard\Mvc\Application;

require __DIR__ . '/../../php/autoload.php';

Outboard\on_task('fibonacci', static function (int $number): array {
    [$last, $next] = [0, 1];
    for ($step = 0; $step < $number; $step++) {
        [$last, $next] = [$next, $last + $next];
    }
    return ['number' => $number, 'fibonacci' => $last, 'worker' => getmypid()];
});

$services = (new Container())
    ->scoped(Board::class, static fn () => new Board(getenv('NOTES_DATABASE') ?: __DIR__ . '/notes.sqlite'));

(new Application(__DIR__ . '/modules', __DIR__ . '/public', $services))->serve();
