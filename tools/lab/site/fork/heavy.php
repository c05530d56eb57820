<?php
// A script whose boot allocates memory, so that the process has about 30 MB.
$kept = [];
for ($number = 0; $number < 256 * (int) '@MIB@'; $number++) {
    $kept[] = str_repeat(chr($number % 256), 4000);
}
Outboard\snapshot();
echo 'ok';
