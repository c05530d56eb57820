<?php

/** Debian's autoloaders stand in for Composer's; with Composer this is vendor/autoload.php. */

declare(strict_types=1);

require_once 'Symfony/Bundle/FrameworkBundle/autoload.php';
require_once 'Symfony/Bundle/TwigBundle/autoload.php';
require_once 'Symfony/Component/Mime/autoload.php';

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/' . strtr(substr($class, 4), '\\', '/') . '.php';
    if (str_starts_with($class, 'App\\') && is_file($file)) {
        require $file;
    }
});
