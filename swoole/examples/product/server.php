<?php

// One server, as its file in conf/ describes it: php server.php NAME

require __DIR__ . '/src/autoload.php';

(new product\Server(new product\Config(__DIR__, $argv[1] ?? 'demo')))->run();
