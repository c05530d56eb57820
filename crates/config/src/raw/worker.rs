//! `mode` and `[app.NAME.worker]`: how an app's requests are answered.

use crate::scalar::{FilePath, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an app's requests are answered.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Mode {
    /// By a script per request, as php-fpm runs it.
    #[default]
    Classic,
    /// By a script that stays: it boots once per worker, then answers request after request.
    Worker,
}

/// The script that stays, in worker mode.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Worker {
    /// The script, from the configuration file's folder; absent: the root's `index.php`.
    #[schemars(extend("x-alias" = ["file", "worker_script"]))]
    pub(crate) script: Option<FilePath>,
    /// The class that answers, if the script leaves that open: it implements
    /// `Outboard\HttpWorker`, and is there once the script has run.
    #[schemars(extend("x-alias" = ["worker_class"]))]
    pub(crate) class: Option<PlainText>,
    /// Requests that a worker may have at a time, each in a coroutine. Above 1 the application has
    /// to be written for it.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) concurrency: u32,
    /// What keeps one request from the next.
    pub(crate) isolation: Isolation,
    /// Whether PHP has the functions of FrankenPHP's worker convention as well.
    pub(crate) frankenphp: bool,
}

/// What keeps one request from the next.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Isolation {
    /// The engine's state is reset between them; the application's own stays.
    #[default]
    Reset,
    /// Each is answered by a fresh fork of the booted script: nothing stays.
    Fork,
}

impl Default for Worker {
    fn default() -> Self {
        Worker {
            script: None,
            class: None,
            concurrency: 1,
            isolation: Isolation::default(),
            frankenphp: true,
        }
    }
}
