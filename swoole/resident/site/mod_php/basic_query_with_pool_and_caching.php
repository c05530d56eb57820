<?php

declare(strict_types=1);

require_once __DIR__ . '/../include/functions.php';
require_once __DIR__ . '/../include/mod_php_connection.php';

$page = function_exists('apcu_fetch') ? apcu_fetch('page') : false;
if ($page === false) {
    $page = print_r(rows(persistent_connection(), 'SELECT * FROM test1'), true);
    function_exists('apcu_add') && apcu_add('page', $page);
}
print $page;
