<?php
// A front controller whose boot takes a given time of the processor; the same in classic mode, where
// it boots for each request, and with isolation "fork", where it has booted before the first.
function processor_ms(): float
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1e3
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e3;
}

$end_ms = processor_ms() + (float) getenv('BOOT_MS');
$sum = 0;
while (processor_ms() < $end_ms) {
    for ($step = 0; $step < 1000; $step++) {
        $sum += $step;
    }
}
Outboard\snapshot();
echo 'ok';
