<?php

/** Brings Swoole's classes for the script that asks for them. */

declare(strict_types=1);

require __DIR__ . '/../../php/shim/swoole.php';
require __DIR__ . '/server.php';
