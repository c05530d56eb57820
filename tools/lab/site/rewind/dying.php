<?php
// A script of a process that holds memory, whose requests end it in the way that they name. Each says before
// when it does so (CLOCK_MONOTONIC, in ns).
$kept = [];
for ($number = 0; $number < 256 * (int) '@MIB@'; $number++) {
    $kept[] = str_repeat(chr($number % 256), 4000);
}
// To fill the stack takes PHP longer than all that follows, so the time is written down on the way.
function endless(int $number): array
{
    if ($number % 500 === 0) {
        file_put_contents('@DIED@', (string) hrtime(true));
    }
    return array_map('endless', [$number + 1]);
}
Outboard\snapshot();
$way = substr($_SERVER['REQUEST_URI'], 1);
if ($way === 'up' || $way === '') {
    echo 'up';
    return;
}
// The next request is there by now.
usleep(20000);
echo 'x';
file_put_contents('@DIED@', (string) hrtime(true));
match ($way) {
    'kill' => posix_kill(getmypid(), SIGKILL),
    'terminate' => posix_kill(getmypid(), SIGTERM),
    'overflow' => endless(0),
    'crash' => FFI::cdef('void *memset(void *, int, size_t);')->memset(FFI::cast('char *', 16), 0, 1),
    'leave' => FFI::cdef('void _exit(int);')->_exit(0),
    'memory' => str_repeat('x', 1 << 30),
    'fatal' => nowhere(),
    'fiber' => (new Fiber(fn () => exit()))->start(),
    'limit' => posix_setrlimit(POSIX_RLIMIT_NOFILE, 100, 100),
};
