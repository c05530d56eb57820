<?php
require dirname(__DIR__) . '/calls.php';
echo measured($_GET['call'] ?? null);
