//! `mode` and `[app.NAME.worker]`: how PHP handles the requests of an app.

use super::table::table;
use crate::scalar::{As, FilePath, OrEmpty, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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

table! {
    /// The worker script, in worker mode.
    #[derive(PartialEq, Eq)]
    pub struct Worker {
        /// Path of the worker script, relative to the configuration file. Default: `index.php` of the
        /// root.
        #[schemars(extend("x-alias" = ["file", "worker_script"]))]
        #[serde(with = "As::<OrEmpty<FilePath>>")]
        pub script: PathBuf = PathBuf::new(),
        /// Class that handles requests if the script does not call a handler function itself. It
        /// implements `Outboard\HttpWorker` and must be defined once the script has run.
        #[schemars(extend("x-alias" = ["worker_class"]))]
        #[serde(with = "As::<Option<PlainText>>")]
        pub class: Option<String> = None,
        /// Maximum concurrent requests per worker, each in a coroutine. Values above 1 need an
        /// application that supports them.
        #[schemars(range(min = 1, max = 1000))]
        pub concurrency: u32 = 1,
        /// How requests are isolated from each other.
        pub isolation: Isolation = Isolation::default(),
        /// With isolation `rewind`: whether a change of a file that the start of the script has read
        /// has it started again before the next request.
        pub watch: bool = true,
        /// Whether PHP also has the functions of FrankenPHP's worker mode.
        pub frankenphp: bool = true,
        /// Whether the script is a program that starts a server itself, with classes that PHP then has. Workers
        /// are forked when it does. Its host, port and numbers of processes are ignored here;
        /// `outboard run` uses them.
        pub starts_server: bool = false,
        /// Whether workers respond on connections of clients without the gateway in between: for plain
        /// HTTP/1.1, if the app is the only one. `outboard check` names the settings of the app that exclude it.
        pub direct: bool = false,
        /// Arguments of a program that starts a server.
        #[serde(with = "As::<Vec<PlainText>>")]
        pub arguments: Vec<String> = Vec::new(),
        /// Whether `exit` in a request ends the script as well: in development mode.
        #[serde(skip)]
        pub exit_ends_script: bool = false,
        /// File for a report of the state at the start of each request; `outboard doctor state` sets it.
        #[serde(skip)]
        pub state_report: Option<PathBuf> = None,
    }
}

impl Worker {
    /// What `$argv` holds in a program that starts a server: the script and its arguments.
    pub fn argv(&self) -> Vec<String> {
        let script = self.script.display().to_string();
        std::iter::once(script).chain(self.arguments.iter().cloned()).collect()
    }
}

/// How requests are isolated from each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Isolation {
    /// The engine's state is reset after each request; the application's state persists.
    #[default]
    Reset,
    /// After each request the worker's memory is put back to what it was when the script had booted; no
    /// state persists.
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
