<?php

/** Loads the package's classes without Composer. */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Outboard\\')) {
        $file = __DIR__ . '/src/' . strtr(substr($class, strlen('Outboard\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
