<?php

// Controllers, with tasks. The second port is for management.
return [
    'environment' => 'production',
    'listen' => [['127.0.0.1', 9511], ['127.0.0.1', 9512]],
    'worker_class' => 'web\Application',
    'task_class' => 'demo\Tasks',
    'server_setting' => [
        'daemonize' => true,
        'worker_num' => 2,
        'task_worker_num' => 1,
        'dispatch_mode' => 3,
        'open_cpu_affinity' => true,
        'tcp_nodelay' => true,
    ],
];
