//! `environment` and `[development]`: the purpose of the server.

use crate::scalar::{FileName, FilePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Purpose of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Environment {
    /// Serves visitors.
    #[default]
    Production,
    /// Reloads changed files at once, shows errors, and runs one worker per app.
    Development,
}

/// Settings for `environment = "development"`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Development {
    /// Directories to watch for changes. Default: for each app its root, or the project around it,
    /// and the directory of its worker script.
    pub(crate) watch: Vec<FilePath>,
    /// Names of subdirectories that are not watched, in addition to those with a leading dot.
    pub(crate) ignore: Vec<FileName>,
    /// Detects changes by polling instead of inotify, for network file systems and directories
    /// shared with a virtual machine.
    pub(crate) polling: bool,
    /// Whether pages in a browser reload after a change.
    pub(crate) live_reload: bool,
}

impl Default for Development {
    fn default() -> Self {
        let ignore = ["cache", "log", "logs", "node_modules", "sessions", "storage", "tmp", "var"];
        Development {
            watch: Vec::new(),
            ignore: ignore.map(|name| FileName(name.to_owned())).to_vec(),
            polling: false,
            live_reload: true,
        }
    }
}
