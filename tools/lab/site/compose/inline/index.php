<?php
// The whole page in one script that blocks its process while it waits.
require dirname(__DIR__) . '/public/before.php';
require dirname(__DIR__) . '/outside.php';
echo outside();
require dirname(__DIR__) . '/public/after.php';
