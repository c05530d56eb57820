<?php

/** Brings RoadRunner's classes and runs the loop that asks for them. */

declare(strict_types=1);

require __DIR__ . '/../../php/shim/roadrunner.php';

Outboard\Shim\RoadRunner\Loop::run(__DIR__ . '/worker.php');
