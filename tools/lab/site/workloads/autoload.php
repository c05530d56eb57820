<?php
// PSR-4 for the generated tree.
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Lab\\')) {
        require __DIR__ . '/classes/' . strtr($class, '\\', '/') . '.php';
    }
});
