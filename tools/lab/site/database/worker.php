<?php
// Plain PDO. /sleep.php reuses its connections, like persistent ones under php-fpm; /connect opens
// one per request.
function connect(): PDO
{
    return new PDO('mysql:unix_socket=@SOCKET@;dbname=lab', 'root', '');
}

function wait_there(PDO $database): string
{
    return $database->query('SELECT SLEEP(0.03)')->fetchColumn();
}

$idle = [];
Outboard\serve(static function (Outboard\Request $request) use (&$idle): string {
    if ($request->path() === '/') {
        return 'ok';
    }
    if ($request->path() === '/connect') {
        return wait_there(connect());
    }
    $database = array_pop($idle) ?? connect();
    $slept = wait_there($database);
    $idle[] = $database;
    return $slept;
});
