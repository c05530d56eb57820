<?php

/**
 * Lets a script with a Swoole\Http\Server run unchanged:
 *
 *     require 'vendor/outboard/runtime/shim/swoole.php';
 *     require __DIR__ . '/server.php';
 *
 * There are requests, responses, tasks and timers; go() and the coroutine clients are not needed,
 * since PHP's own functions wait without holding the worker.
 */

declare(strict_types=1);

use Outboard\Shim\Swoole\Request;
use Outboard\Shim\Swoole\Response;
use Outboard\Shim\Swoole\Server;
use Outboard\Shim\Swoole\Timer;

require_once __DIR__ . '/../autoload.php';

class_alias(Server::class, 'Swoole\Http\Server');
class_alias(Request::class, 'Swoole\Http\Request');
class_alias(Response::class, 'Swoole\Http\Response');
class_alias(Timer::class, 'Swoole\Timer');
defined('SWOOLE_BASE') || define('SWOOLE_BASE', 1);
defined('SWOOLE_PROCESS') || define('SWOOLE_PROCESS', 2);
defined('SWOOLE_SOCK_TCP') || define('SWOOLE_SOCK_TCP', 1);
