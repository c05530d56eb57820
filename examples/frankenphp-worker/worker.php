<?php

/** A worker script as FrankenPHP documents them; nothing in it knows of Outboard. */

declare(strict_types=1);

ignore_user_abort(true);

$booted = microtime(true);
$served = 0;

$handler = static function () use ($booted, &$served): void {
    if (($_GET['give'] ?? '') === 'up') {
        throw new RuntimeException('given up');
    }
    header('Content-Type: application/json');
    setcookie('visits', (string) (1 + (int) ($_COOKIE['visits'] ?? 0)));
    echo json_encode([
        'server' => $_SERVER['FRANKENPHP_WORKER'] ?? null,
        'path' => $_SERVER['REQUEST_URI'],
        'name' => $_POST['name'] ?? $_GET['name'] ?? 'world',
        'served' => ++$served,
        'booted' => $booted,
    ]);
};

$maxRequests = (int) ($_SERVER['MAX_REQUESTS'] ?? 0);
for ($requests = 0; $maxRequests === 0 || $requests < $maxRequests; ++$requests) {
    $keepRunning = frankenphp_handle_request($handler);
    gc_collect_cycles();
    if (!$keepRunning) {
        break;
    }
}
