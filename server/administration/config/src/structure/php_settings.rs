//! Settings of php.ini that are written where a key of Outboard is expected: which they are, and where they belong.

use super::written::{assigned, literal};
use toml::de::DeValue;

/// Those of the core (main.c of php-src), but for those that have a key of their own.
const CORE: &str = "allow_url_fopen allow_url_include auto_append_file auto_prepend_file default_charset \
    default_mimetype default_socket_timeout disable_classes disable_functions display_errors \
    display_startup_errors enable_dl error_append_string error_prepend_string error_reporting expose_php \
    file_uploads html_errors ignore_user_abort implicit_flush include_path log_errors max_file_uploads \
    max_input_nesting_level max_input_time max_input_vars memory_limit open_basedir output_buffering \
    post_max_size precision realpath_cache_size realpath_cache_ttl register_argc_argv request_order \
    sendmail_path serialize_precision short_open_tag sys_temp_dir upload_max_filesize upload_tmp_dir \
    variables_order";

/// Extensions, whose settings begin with their name and a dot.
const EXTENSIONS: &str = "apc apcu assert bcmath date exif gd iconv imagick intl mail mbstring mysqli mysqlnd opcache \
    openssl pcre pdo_mysql pgsql phar redis session soap sqlite3 tidy xdebug zend zlib";

/// How to write the setting at `path`, if it is one.
pub(super) fn hint(path: &[String], name: &str, value: &DeValue<'_>) -> Option<String> {
    let has = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
    let extension = |name: &str| name.split_once('.').is_some_and(|(of, _)| has(EXTENSIONS, of));
    let (name, value) = match value {
        // TOML reads `opcache.enable = 1` as a table.
        DeValue::Table(table) if has(EXTENSIONS, name) => {
            let (key, value) = table.iter().next()?;
            (format!("{name}.{}", key.get_ref()), literal(value.get_ref()))
        }
        value if has(CORE, name) || extension(name) => (name.to_owned(), literal(value)),
        _ => return None,
    };
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let (key, place) = match steps[..] {
        [.., "php"] => ("ini", String::new()),
        [] | ["app", _] => ("php.ini", String::new()),
        ["app", app, ..] => ("php.ini", format!(" in [app.{app}]")),
        _ => ("php.ini", " at the top of the file".to_owned()),
    };
    Some(format!("write {key} = {{ {} }}{place}", assigned(&name, value.as_deref().unwrap_or("…"))))
}
