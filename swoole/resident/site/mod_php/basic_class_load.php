<?php

declare(strict_types=1);

require_once __DIR__ . '/../include/functions.php';
print 'ok';
