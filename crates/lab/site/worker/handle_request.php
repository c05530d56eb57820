<?php
// The same the way that worker scripts for other servers are written: superglobals and echo.
$handler = static function (): void {
    $whole = $_SERVER['REQUEST_METHOD'] === 'GET'
        && $_SERVER['HTTP_X_PROBE'] === 'header'
        && $_COOKIE['probe'] === 'cookie';
    echo $whole ? 'ok' : 'the request did not arrive whole';
};
while (Outboard\handle_request($handler)) {
}
