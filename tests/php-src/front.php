<?php
/* Runs one of PHP's tests: by itself, below a snapshot, or within a request of a script that stays. */

function run_test_of_php(): string
{
    chdir(dirname($_SERVER['HTTP_X_TEST']));
    foreach (json_decode($_SERVER['HTTP_X_INI'] ?? '[]', true) as $name => $value) {
        @ini_set($name, $value);
    }
    return $_SERVER['HTTP_X_TEST'];
}

if (isset($_ENV['OUTBOARD_TEST_STAYS']) || getenv('OUTBOARD_TEST_STAYS')) {
    while (Outboard\handle_request(function () { include run_test_of_php(); }));
    return;
}
Outboard\snapshot();
include run_test_of_php();
