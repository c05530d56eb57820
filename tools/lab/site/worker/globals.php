<?php
// Like hello.php, after reading the request: all of $_SERVER, a header, a cookie.
Outboard\serve(static function (Outboard\Request $request): string {
    $server = $request->server();
    return $server['REQUEST_METHOD'] === 'GET'
        && $request->header('x-probe') === 'header'
        && $request->cookie('probe') === 'cookie' ? 'ok' : 'the request did not arrive whole';
});
