<?php

declare(strict_types=1);

require_once __DIR__ . '/../include/functions.php';
require_once __DIR__ . '/../include/mod_php_connection.php';

load_classes(100);
$cache = array_combine(array_map(fn ($n) => "key$n", range(0, 999)), range(0, 999));
$sum = 0;
foreach ($cache as $key => $unused) {
    $sum += $cache[$key];
}
$connection = persistent_connection();
print $sum;
print print_r(rows($connection, 'SELECT test1_id, test1_data FROM test1 WHERE test1_id = 1'), true);
print print_r(rows($connection, 'SELECT test1_id, test1_data FROM test1 WHERE test1_id = 2'), true);
