//! Production or development, and the settings that development changes.

use super::app::App;
use super::context::Context;
use super::worker::Mode;
use crate::disk::Found;
use crate::raw::Development;
use crate::scalar::Count;
use std::path::{Path, PathBuf};

pub(super) fn development(
    written: &Development,
    apps: &[App],
    context: &mut Context<'_>,
) -> Development {
    let listed: Vec<PathBuf> = (written.watch.iter().enumerate())
        .map(|(index, directory)| {
            context.directory(&["development", "watch", index.to_string().as_str()], directory)
        })
        .collect();
    let directories = if listed.is_empty() {
        apps.iter().flat_map(|app| of_app(app, context)).collect()
    } else {
        listed
    };
    Development { watch: outermost(directories), ..written.clone() }
}

/// The directories with the files of an app.
fn of_app(app: &App, context: &Context<'_>) -> Vec<PathBuf> {
    let mut directories = vec![project_of(&app.root, context)];
    let worker = match &app.mode {
        Mode::Worker(worker) => Some(&worker.script),
        Mode::Classic => None,
    };
    let scripts = worker.into_iter().chain(app.tasks.iter().map(|tasks| &tasks.script));
    directories.extend(scripts.filter_map(|script| script.parent()).map(Path::to_owned));
    directories
}

/// The project directory, if the root is the public part of a project.
pub(super) fn project_of(root: &Path, context: &Context<'_>) -> PathBuf {
    let is_public = root.file_name().is_some_and(|name| {
        ["public", "web", "htdocs", "webroot"].iter().any(|usual| name == *usual)
    });
    let Some(around) = root.parent().filter(|_| is_public) else { return root.to_owned() };
    let is_project =
        matches!(context.disk.look(&around.join("composer.json")), Ok(Found::File { .. }))
            || ["src", "app"]
                .iter()
                .any(|name| matches!(context.disk.look(&around.join(name)), Ok(Found::Directory)));
    if is_project { around.to_owned() } else { root.to_owned() }
}

fn outermost(mut directories: Vec<PathBuf>) -> Vec<PathBuf> {
    directories.sort();
    directories.dedup_by(|later, earlier| later.starts_with(earlier));
    directories
}

/// Applies the settings of development mode. PHP settings in the file take precedence.
pub(super) fn develop(app: &mut App) {
    let pool = &mut app.pool;
    (pool.min, pool.max, pool.min_idle) = (Count::Fixed(1), Count::Fixed(1), 0);
    if let Some(tasks) = &mut app.tasks {
        tasks.workers = 1;
    }
    app.debug.develop();
    if let Mode::Worker(worker) = &mut app.mode {
        worker.exit_ends_script = true;
    }
    app.page_cache = None;
    app.compressed_files_bytes = None;
    app.static_files.revalidate_always();
    app.static_files.headers.entry("Cache-Control").or_insert_with(|| "no-cache".to_owned());
    for (name, value) in INI {
        app.php.ini.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    let env = &mut app.php.env;
    env.entry("OUTBOARD_ENV".to_owned()).or_insert_with(|| "development".to_owned());
}

/// Scripts are checked for changes at every request; errors are logged with the arguments of calls,
/// and the error page is rendered from the log.
const INI: [(&str, &str); 9] = [
    ("display_errors", "0"),
    ("error_reporting", "32767"),
    ("html_errors", "0"),
    ("log_errors", "1"),
    ("opcache.revalidate_freq", "0"),
    ("opcache.validate_timestamps", "1"),
    ("realpath_cache_ttl", "0"),
    ("zend.exception_ignore_args", "0"),
    ("zend.exception_string_param_max_len", "60"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked::testing::{APP, valid};
    use crate::*;

    #[test]
    fn nested_directories_are_watched_once() {
        let directories = ["/a/b", "/a", "/ab", "/a/b/c", "/c"].map(PathBuf::from);
        assert_eq!(outermost(directories.to_vec()), ["/a", "/ab", "/c"].map(PathBuf::from));
    }

    #[test]
    fn development_has_one_worker_and_keeps_explicit_settings() {
        let production = valid(&format!("{APP}[app.site.pool]\nmax = 8\n"));
        assert_eq!(production.environment(), Environment::Production);
        assert_eq!(production.apps[0].pool.max, Count::Fixed(8));
        assert!(production.apps[0].static_files.cache_valid_ms > 0);
        let text = format!(
            "environment = \"development\"\n{APP}page_cache = \"auto\"\n[app.site.pool]\nmax = 8\n\
             [app.site.php.ini]\ndisplay_errors = true\n"
        );
        let development = valid(&text);
        assert_eq!(development.environment(), Environment::Development);
        assert!(!development.development.expect("it is written").watch.is_empty());
        let app = &development.apps[0];
        assert_eq!((app.pool.min, app.pool.max), (Count::Fixed(1), Count::Fixed(1)));
        assert!(app.page_cache.is_none() && app.static_files.cache_valid_ms == 0);
        assert_eq!(app.php.ini["opcache.revalidate_freq"], "0");
        assert_eq!(app.php.ini["display_errors"], "1");
        assert_eq!(app.php.env["OUTBOARD_ENV"], "development");
    }
}
