//! What the lab's experiment `resident` measures: eight programs for Swoole with their variants for a process per
//! request, and how PHP runs them with the extension.
//!
//! Used by the lab, which serves and measures them, and by `swoole/tests`.

#![forbid(unsafe_code)]

/// The extension, and the name of PHP with it in every table.
pub const EXTENSION: &str = "swoole";

/// The class of the smallest program's server.
pub const SERVER: &str = r"Swoole\Http\Server";

/// The reason for comparisons that are not measured without the extension.
pub const NOT_INSTALLED: &str = "PHP has no extension swoole, which Debian does not \
    package: `pecl install swoole` builds it, --program-extension FILE names one";

/// The tables of the scripts and their rows.
pub const DATABASE: &str = include_str!("../site/database.sql");

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$((concat!("resident/", $path), include_str!(concat!("../site/", $path)))),*]
    };
}

/// The scripts: those of `programs` start a server at the port of their argument, those of `mod_php` are run for each
/// request.
pub const FILES: &[(&str, &str)] = files![
    "include/functions.php",
    "include/mod_php_connection.php",
    "include/pool.php",
    "mod_php/basic.php",
    "mod_php/basic_class_load.php",
    "mod_php/basic_class_load_multiple.php",
    "mod_php/basic_query.php",
    "mod_php/basic_query_with_pool.php",
    "mod_php/basic_query_with_pool_and_caching.php",
    "mod_php/real_app_simulation.php",
    "mod_php/simple_real_app_simulation.php",
    "programs/basic.php",
    "programs/basic_class_load.php",
    "programs/basic_class_load_multiple.php",
    "programs/basic_query.php",
    "programs/basic_query_with_pool.php",
    "programs/basic_query_with_pool_and_caching.php",
    "programs/real_app_simulation.php",
    "programs/simple_real_app_simulation.php",
];
