<?php
// The same in the style of other servers' worker scripts: superglobals and echo.
$handler = static function (): void {
    $whole = $_SERVER['REQUEST_METHOD'] === 'GET'
        && $_SERVER['HTTP_X_PROBE'] === 'header'
        && $_COOKIE['probe'] === 'cookie';
    echo $whole ? 'ok' : 'the request did not arrive whole';
};
while (Outboard\handle_request($handler)) {
}
