<?php

declare(strict_types=1);

require_once __DIR__ . '/../include/functions.php';
require_once __DIR__ . '/../include/mod_php_connection.php';

load_classes(100);
$cache = range(0, 9999);
$sum = 0;
for ($i = 0; $i < 10000; $i++) {
    $sum += $cache[$i];
}
for ($i = 0; $i < 10; $i++) {
    $file = new_file_name();
    file_put_contents($file, str_repeat("line $i\n", 100));
    $sum += strlen(file_get_contents($file));
    unlink($file);
}
$connection = persistent_connection();
$slept = 0;
for ($i = 0; $i < 3; $i++) {
    $slept += count(rows($connection, 'SELECT SLEEP(0.01)'));
}
print "$sum $slept";
