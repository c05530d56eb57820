<?php

declare(strict_types=1);

return [
    'driver' => 'file',
    'files' => storage_path('framework/sessions'),
    'lifetime' => 120,
    'expire_on_close' => false,
    'encrypt' => false,
    'lottery' => [2, 100],
    'cookie' => 'packing_list',
    'path' => '/',
    'domain' => null,
    'secure' => false,
    'http_only' => true,
    'same_site' => 'lax',
];
