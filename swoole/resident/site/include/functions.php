<?php

declare(strict_types=1);

// Both variants use these; a class of the generated tree is loaded by its name.
spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/classes/' . str_replace('\\', '/', $class) . '.php';
    if (is_file($file)) {
        require $file;
    }
});

function load_classes(int $count): int
{
    $available = require __DIR__ . '/available_classes.php';
    return count(array_filter(array_slice($available, 0, $count), 'class_exists'));
}

/** A file that does not exist: many file systems flush one that is overwritten. */
function new_file_name(): string
{
    return sys_get_temp_dir() . '/resident-' . bin2hex(random_bytes(8));
}

function db_settings(): array
{
    static $settings = null;
    return $settings ??= require __DIR__ . '/settings.php';
}
