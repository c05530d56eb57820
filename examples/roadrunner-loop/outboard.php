<?php

/** Brings RoadRunner's classes and runs the loop that uses them. */

declare(strict_types=1);

require __DIR__ . '/../../php/shim/roadrunner.php';

Outboard\Shim\RoadRunner\Loop::run(__DIR__ . '/worker.php');
