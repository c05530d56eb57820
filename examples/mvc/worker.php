<?php

/** The demonstration of the MVC: modules, controllers, views. What is here runs once per worker. */

declare(strict_types=1);

use demo\model\Board;
use Outboard\Container;
use Outboard\Mvc\Application;

require __DIR__ . '/../../php/autoload.php';

$services = (new Container())
    ->scoped(Board::class, static fn () => new Board(getenv('NOTES_DATABASE') ?: __DIR__ . '/notes.sqlite'));

(new Application(__DIR__ . '/modules', __DIR__ . '/public', $services))->serve();
