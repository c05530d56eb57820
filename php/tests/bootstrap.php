<?php

/** Composer's autoloader if it exists; else those of Debian's packages. */

declare(strict_types=1);

require __DIR__ . '/engine.php';

if (is_file(__DIR__ . '/../vendor/autoload.php')) {
    require __DIR__ . '/../vendor/autoload.php';
    return;
}

require __DIR__ . '/../autoload.php';
require_once 'Nyholm/Psr7/autoload.php';
require_once 'GuzzleHttp/Psr7/autoload.php';
require_once 'Slim/Psr7/autoload.php';
require_once 'Psr/SimpleCache/autoload.php';
require_once 'Psr/Cache/autoload.php';
require_once 'Symfony/Component/HttpKernel/autoload.php';
require_once 'Symfony/Component/Runtime/autoload.php';
spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/' . strtr(substr($class, strlen('Outboard\\Tests\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'Outboard\\Tests\\') && is_file($file)) {
        require $file;
    }
});

// Debian 12 has no package for PSR-15.
if (!interface_exists(Psr\Http\Server\RequestHandlerInterface::class)) {
    require __DIR__ . '/psr15.php';
}
