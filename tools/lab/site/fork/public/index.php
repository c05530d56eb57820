<?php
// A front controller whose boot takes a given CPU time: for each request in classic mode, and once
// before the first request with isolation "fork".
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
