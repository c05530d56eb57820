<?php

// A worker without a framework.
return [
    'environment' => 'production',
    'listen' => [['127.0.0.1', 9510]],
    'worker_class' => 'demo\Worker',
    'server_setting' => [
        'daemonize' => true,
        'worker_num' => 2,
        'max_request' => 100000,
    ],
];
