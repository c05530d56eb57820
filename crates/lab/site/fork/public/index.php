<?php
// A front controller whose boot computes for a given time; the same in classic mode, where it boots
// for each request, and with isolation "fork", where it has booted before the first.
$begin = hrtime(true);
$boot_ms = (float) getenv('BOOT_MS');
$sum = 0;
while (hrtime(true) - $begin < $boot_ms * 1e6) {
    for ($step = 0; $step < 1000; $step++) {
        $sum += $step;
    }
}
Outboard\snapshot();
echo 'ok';
