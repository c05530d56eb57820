<?php
// Requests of many kinds, some of which leave as much state behind as possible; /clean reports
// whether any of it reached another request.
Outboard\serve(static fn (Outboard\Request $request) => match ($request->path()) {
    '/json' => ['path' => $request->path(), 'query' => $request->query()],
    '/form' => $request->form('name', 'nobody'),
    '/server' => (string) count($request->server()),
    '/memory' => (string) strlen(str_repeat('x', 1 << 18)),
    '/fetch' => Outboard\fetch('http://@BACKEND@/1ms')->body,
    '/sleep' => pause(),
    '/parallel' => implode(',', Outboard\concurrently(array_fill(0, 3, pause(...)))),
    '/dirty' => leave_behind(),
    '/clean' => what_is_left(),
    default => 'ok',
});

function pause(): string
{
    Outboard\sleep(0.001);
    return 'slept';
}

function leave_behind(): string
{
    ini_set('precision', '3');
    ini_set('memory_limit', '64M');
    error_reporting(0);
    date_default_timezone_set('Asia/Tokyo');
    setlocale(LC_ALL, 'C.UTF-8');
    mb_internal_encoding('ISO-8859-1');
    libxml_use_internal_errors(true);
    putenv('LAB_LEFT=behind');
    chdir('/');
    set_error_handler(static fn () => true);
    set_exception_handler(static fn () => null);
    $_GET['left'] = $_POST['left'] = $_COOKIE['left'] = $_SERVER['LEFT'] = 'behind';
    $GLOBALS['_SESSION'] = ['left' => 'behind'];
    header('X-Left: behind');
    http_response_code(202);
    fopen('php://temp', 'w+');
    ob_start();
    return 'dirty';
}

/** "clean", or with status 500 the state that an earlier request left behind. */
function what_is_left(): string
{
    $error_handler = set_error_handler(null);
    $exception_handler = set_exception_handler(null);
    $left = array_keys(array_filter([
        'ini' => ini_get('precision') !== '14' || ini_get('memory_limit') !== '128M',
        'error_reporting' => error_reporting() === 0,
        'time zone' => date_default_timezone_get() !== 'UTC',
        'encoding' => mb_internal_encoding() !== 'UTF-8',
        'locale' => setlocale(LC_NUMERIC, '0') !== 'C',
        'folder' => getcwd() === '/',
        'libxml' => libxml_use_internal_errors(),
        'environment' => getenv('LAB_LEFT') !== false,
        'error handler' => $error_handler !== null,
        'exception handler' => $exception_handler !== null,
        'superglobals' => isset($_GET['left']) || isset($_POST['left']) || isset($_COOKIE['left'])
            || isset($_SERVER['LEFT']) || isset($_SESSION['left']),
        'headers' => preg_grep('/^X-Left:/i', headers_list()) !== [],
        'status' => http_response_code() === 202,
    ]));
    if ($left === []) {
        return 'clean';
    }
    http_response_code(500);
    return 'left: ' . implode(', ', $left);
}
