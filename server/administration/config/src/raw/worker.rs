//! `mode` and `[app.NAME.worker]`: how PHP handles the requests of an app.

use crate::scalar::{FilePath, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How PHP handles the requests of an app.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Mode {
    /// Runs a script per request, like php-fpm.
    #[default]
    Classic,
    /// Boots one script per worker, which then handles many requests.
    Worker,
}

/// The worker script, in worker mode.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Worker {
    /// Path of the worker script, relative to the configuration file. Default: `index.php` of the
    /// root.
    #[schemars(extend("x-alias" = ["file", "worker_script"]))]
    pub(crate) script: Option<FilePath>,
    /// Class that handles requests if the script does not call a handler function itself. It
    /// implements `Outboard\HttpWorker` and must be defined once the script has run.
    #[schemars(extend("x-alias" = ["worker_class"]))]
    pub(crate) class: Option<PlainText>,
    /// Maximum concurrent requests per worker, each in a coroutine. Values above 1 need an
    /// application that supports them.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) concurrency: u32,
    /// How requests are isolated from each other.
    pub(crate) isolation: Isolation,
    /// With isolation `rewind`: whether a change of a file that the start of the script has read
    /// has it started again before the next request.
    pub(crate) watch: bool,
    /// Whether PHP also has the functions of FrankenPHP's worker mode.
    pub(crate) frankenphp: bool,
    /// Whether the script is a program that starts a server itself, with classes that PHP then has. Workers
    /// are forked when it does. Its host, port and numbers of processes are ignored here;
    /// `outboard run` uses them.
    pub(crate) starts_server: bool,
    /// Arguments of a program that starts a server.
    pub(crate) arguments: Vec<PlainText>,
}

/// How requests are isolated from each other.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Isolation {
    /// The engine's state is reset after each request; the application's state persists.
    #[default]
    Reset,
    /// After each request the worker's memory is put back to what it was when the script had booted; no
    /// state persists.
    Rewind,
}

impl Default for Worker {
    fn default() -> Self {
        Worker {
            script: None,
            class: None,
            concurrency: 1,
            isolation: Isolation::default(),
            watch: true,
            frankenphp: true,
            starts_server: false,
            arguments: Vec::new(),
        }
    }
}
