<?php

declare(strict_types=1);

require_once __DIR__ . '/../include/functions.php';
require_once __DIR__ . '/../include/mod_php_connection.php';
print print_r(rows(persistent_connection(), 'SELECT * FROM test1'), true);
