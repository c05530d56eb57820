<?php

/**
 * Runs a worker script for RoadRunner unchanged, with a concurrency of 1:
 *
 *     require 'vendor/outboard/runtime/shim/roadrunner.php';
 *     Outboard\Shim\RoadRunner\Loop::run(__DIR__ . '/worker.php');
 */

declare(strict_types=1);

use Outboard\Shim\RoadRunner\Psr7Worker;
use Outboard\Shim\RoadRunner\Worker;

require_once __DIR__ . '/../autoload.php';

class_alias(Worker::class, 'Spiral\RoadRunner\Worker');
class_alias(Psr7Worker::class, 'Spiral\RoadRunner\Http\PSR7Worker');
putenv('RR_MODE=http');
