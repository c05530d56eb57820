<?php
// A script whose boot allocates memory, a page per string; each request writes to some of them.
$kept = [];
for ($number = 0; $number < 256 * (int) '@MIB@'; $number++) {
    $kept[] = str_repeat(chr($number % 256), 4000);
}
$distance = intdiv(count($kept), (int) '@PAGES@');
Outboard\serve(static function () use (&$kept, $distance): string {
    for ($number = 0; $number < (int) '@PAGES@'; $number++) {
        $kept[$number * $distance][0] = 'x';
    }
    return 'ok';
});
