//! How PHP handles the requests of an app: one script per request, or a worker script.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::disk::Found;
use crate::raw::{self, Isolation, Php, Worker};
use crate::scalar::Fault;
use std::path::{Path, PathBuf};

/// How PHP handles the requests of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Runs a script per request, like php-fpm.
    Classic,
    /// Boots a worker script, which then handles many requests.
    Worker(Worker),
}

/// `place` is the app's.
pub(super) fn mode(
    raw: &raw::App,
    root: &Path,
    php: &Php,
    place: &[&str],
    context: &mut Context<'_>,
) -> Mode {
    let at = |keys: &[&'static str]| [place, keys].concat();
    match raw.mode {
        raw::Mode::Classic => {
            let worker = at(&["worker"]);
            if context.places.wrote(&worker) && !context.places.wrote(&at(&["mode"])) {
                let fault = Fault::new(
                    "`worker` needs worker mode, but the app is in classic mode",
                )
                .hint("add mode = \"worker\" to the app, or mode = \"classic\" to ignore it");
                context.key(&worker, Kind::Conflict, fault);
            }
            Mode::Classic
        }
        raw::Mode::Worker => {
            if raw.front_controller.0 != "auto" {
                let fault = Fault::new("`front_controller` has no effect in worker mode")
                    .hint("the worker script handles requests that match no file; remove this key");
                context.key(&at(&["front_controller"]), Kind::Conflict, fault);
            }
            let worker = worker(&raw.worker, root, &at(&["worker"]), context);
            check_secret(&worker.script, root, php, &at(&["worker", "script"]), context);
            Mode::Worker(worker)
        }
    }
}

fn worker(raw: &Worker, root: &Path, place: &[&str], context: &mut Context<'_>) -> Worker {
    let at = |key: &'static str| [place, &[key]].concat();
    let is_one_at_a_time = raw.isolation != Isolation::Reset;
    if is_one_at_a_time && raw.concurrency > 1 {
        let fault = Fault::new(format!(
            "`concurrency` is {}, but with isolation = \"{}\" a process handles one request at a time",
            raw.concurrency,
            raw.isolation.name()
        ))
        .hint("remove one of them; `pool.max` limits concurrent requests");
        context.value(&at("concurrency"), Kind::Conflict, fault);
    }
    if raw.starts_server && is_one_at_a_time {
        let name = raw.isolation.name();
        let fault = Fault::new(format!(
            "a program that starts a server cannot have isolation = \"{name}\""
        ))
        .hint("remove `isolation`: its workers handle many requests");
        context.value(&at("isolation"), Kind::Conflict, fault);
    }
    if context.places.wrote(&at("watch")) && !is_one_at_a_time {
        let fault = Fault::new("`watch` has no effect on workers that are no forks of the script")
            .hint("add isolation = \"rewind\", or remove `watch`; `outboard reload` starts new workers");
        context.value(&at("watch"), Kind::Conflict, fault);
    }
    if !raw.arguments.is_empty() && !raw.starts_server {
        let fault = Fault::new("`arguments` are for programs that start a server")
            .hint("add starts_server = true, or remove `arguments`");
        context.value(&at("arguments"), Kind::Conflict, fault);
    }
    Worker { script: script(raw, root, &at("script"), context), ..raw.clone() }
}

/// A script below the root without a PHP extension would be served as a file.
fn check_secret(script: &Path, root: &Path, php: &Php, place: &[&str], context: &mut Context<'_>) {
    let name = script.as_os_str().as_encoded_bytes();
    let is_php = php.extensions.iter().any(|extension| name.ends_with(extension.as_bytes()));
    if script.starts_with(root) && !is_php {
        let message = format!("`{}` would be served as a file", script.display());
        let hint = format!(
            "give it a name that ends with `{}`, or move it outside of the root",
            php.extensions.first().map_or(".php", String::as_str)
        );
        context.value(place, Kind::Conflict, Fault::new(message).hint(hint));
    }
}

fn script(raw: &Worker, root: &Path, place: &[&str], context: &mut Context<'_>) -> PathBuf {
    let is_file = |context: &Context<'_>, path: &Path| {
        matches!(context.disk.look(path), Ok(Found::File { .. }))
    };
    let written = &raw.script;
    if written.as_os_str().is_empty() {
        let path = root.join("index.php");
        // If the root is missing, report only that.
        if context.disk.look(root).is_ok() && !is_file(context, &path) {
            let message =
                format!("worker mode needs a script, and `{}` does not exist", path.display());
            let hint =
                "set its path, relative to the configuration file: worker.script = \"worker.php\"";
            context.key(place, Kind::Path, Fault::new(message).hint(hint));
        }
        return path;
    }
    let path = context.absolute(written);
    let in_root = root.join(written);
    if !is_file(context, &path) && is_file(context, &in_root) {
        let hint = match in_root.strip_prefix(context.directory) {
            Ok(below) => format!(
                "paths are relative to the configuration file: write \"{}\"",
                below.display()
            ),
            Err(_) => format!("write \"{}\"", in_root.display()),
        };
        let message = format!("there is no file `{}`", path.display());
        context.value(place, Kind::Path, Fault::new(message).hint(hint));
        return path;
    }
    context.file(place, written)
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::*;
    use std::path::Path;

    #[test]
    fn worker_mode_has_a_script_and_its_settings() {
        assert_eq!(site("").mode, Mode::Classic);
        let Mode::Worker(worker) = site("mode = \"worker\"\n").mode else { panic!("classic") };
        assert_eq!(worker.script, Path::new("/srv/www/public/index.php"));
        assert_eq!((worker.concurrency, worker.isolation), (1, Isolation::Reset));
        assert!(worker.frankenphp);
        let text = "mode = \"worker\"\n[app.site.worker]\nscript = \"bin/worker.php\"\n\
                    isolation = \"rewind\"\nfrankenphp = false\n";
        let Mode::Worker(worker) = site(text).mode else { panic!("classic") };
        assert_eq!(worker.script, Path::new("/srv/www/bin/worker.php"));
        assert_eq!((worker.isolation, worker.frankenphp), (Isolation::Rewind, false));
        assert!(worker.watch, "its files are watched by default");
    }

    #[test]
    fn only_the_files_of_a_snapshot_are_watched() {
        let worker = |keys: &str| format!("{APP}mode = \"worker\"\nworker = {{ {keys} }}\n");
        assert_error(&worker("watch = false"), Kind::Conflict, 4, "`watch` has no effect");
        let text = "mode = \"worker\"\nworker = { isolation = \"rewind\", watch = false }\n";
        let Mode::Worker(worker) = site(text).mode else { panic!("classic") };
        assert!(!worker.watch);
    }

    #[test]
    fn a_rewound_worker_handles_one_request_at_a_time() {
        let text = format!(
            "{APP}mode = \"worker\"\nworker = {{ isolation = \"rewind\", concurrency = 8 }}\n"
        );
        assert_error(&text, Kind::Conflict, 4, "`concurrency` is 8");
        assert_error(
            &format!("{APP}mode = \"worker\"\nworker.concurrency = 1001\n"),
            Kind::OutOfRange,
            4,
            "from 1 to 1000",
        );
    }

    #[test]
    fn worker_settings_must_match_the_mode() {
        let text = format!("{APP}[app.site.worker]\nscript = \"worker.php\"\n");
        assert_error(&text, Kind::Conflict, 3, "mode = \"worker\"");
        assert_eq!(
            site("mode = \"classic\"\n[app.site.worker]\nconcurrency = 2\n").mode,
            Mode::Classic
        );
        let text = format!("{APP}mode = \"worker\"\nfront_controller = \"/app.php\"\n");
        assert_error(&text, Kind::Conflict, 4, "no effect in worker mode");
    }

    #[test]
    fn a_worker_script_served_as_a_file_is_an_error() {
        let text = format!("{APP}mode = \"worker\"\nworker.script = \"public/app.worker\"\n");
        assert_error(&text, Kind::Conflict, 4, "would be served as a file");
        for fine in ["public/app.php", "app.worker"] {
            site(&format!("mode = \"worker\"\nworker.script = \"{fine}\"\n"));
        }
    }
}
