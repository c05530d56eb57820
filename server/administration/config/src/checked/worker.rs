//! How PHP handles the requests of an app: one script per request, or a worker script.

use super::{Context, Php};
use crate::diagnostic::Kind;
use crate::disk::Found;
use crate::raw;
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

/// The worker script, in worker mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its path; absolute, exists.
    pub script: PathBuf,
    /// Class that handles requests if the script does not call a handler function itself.
    pub class: Option<String>,
    /// Maximum concurrent requests per worker: 1 to 1000, and 1 except with [`Isolation::Reset`].
    pub concurrency: u32,
    /// How requests are isolated from each other.
    pub isolation: Isolation,
    /// Whether a changed file has the script started anew, if workers are forks of it.
    pub watch: bool,
    /// Whether PHP also has the functions of FrankenPHP's worker mode.
    pub frankenphp: bool,
    /// Whether the script starts a server itself.
    pub starts_server: bool,
    /// Arguments of such a program.
    pub arguments: Vec<String>,
    /// File for a report of the state at the start of each request. Not a configuration key: set by
    /// `outboard doctor state`.
    pub state_report: Option<PathBuf>,
}

impl Worker {
    /// What `$argv` holds in a program that starts a server: the script and its arguments.
    pub fn argv(&self) -> Vec<String> {
        let script = self.script.display().to_string();
        std::iter::once(script).chain(self.arguments.iter().cloned()).collect()
    }
}

/// How requests are isolated from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The engine's state is reset after each request.
    Reset,
    /// After each request the worker's memory is put back.
    Rewind,
}

impl Isolation {
    /// As the configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Rewind => "rewind",
        }
    }
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

fn worker(raw: &raw::Worker, root: &Path, place: &[&str], context: &mut Context<'_>) -> Worker {
    let at = |key: &'static str| [place, &[key]].concat();
    let isolation = match raw.isolation {
        raw::Isolation::Reset => Isolation::Reset,
        raw::Isolation::Rewind => Isolation::Rewind,
    };
    let is_one_at_a_time = isolation != Isolation::Reset;
    if is_one_at_a_time && raw.concurrency > 1 {
        let fault = Fault::new(format!(
            "`concurrency` is {}, but with isolation = \"{}\" a process handles one request at a time",
            raw.concurrency,
            isolation.name()
        ))
        .hint("remove one of them; `pool.max` limits concurrent requests");
        context.value(&at("concurrency"), Kind::Conflict, fault);
    }
    if raw.starts_server && is_one_at_a_time {
        let name = isolation.name();
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
    Worker {
        script: script(raw, root, &at("script"), context),
        class: raw.class.as_ref().map(|name| name.0.clone()),
        concurrency: raw.concurrency,
        isolation,
        watch: raw.watch,
        frankenphp: raw.frankenphp,
        starts_server: raw.starts_server,
        arguments: raw.arguments.iter().map(|argument| argument.0.clone()).collect(),
        state_report: None,
    }
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

fn script(raw: &raw::Worker, root: &Path, place: &[&str], context: &mut Context<'_>) -> PathBuf {
    let is_file = |context: &Context<'_>, path: &Path| {
        matches!(context.disk.look(path), Ok(Found::File { .. }))
    };
    let Some(written) = &raw.script else {
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
    };
    let path = context.absolute(written);
    let in_root = root.join(&written.0);
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
