//! `environment` and `[development]`: the purpose of the server.

use super::table::table;
use crate::scalar::{As, FileName, FilePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Where applications write without a change of their sources.
const IGNORED: [&str; 8] =
    ["cache", "log", "logs", "node_modules", "sessions", "storage", "tmp", "var"];

/// Purpose of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Environment {
    /// Serves visitors.
    #[default]
    Production,
    /// Reloads changed files at once, shows errors, and runs one worker per app.
    Development,
}

/// As the configuration file writes it.
impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Environment::Production => "production",
            Environment::Development => "development",
        })
    }
}

table! {
    /// Settings for `environment = "development"`.
    #[derive(PartialEq, Eq)]
    pub struct Development {
        /// Directories to watch for changes. Default: for each app its root, or the project around it,
        /// and the directory of its worker script.
        #[serde(with = "As::<Vec<FilePath>>")]
        pub watch: Vec<PathBuf> = Vec::new(),
        /// Names of subdirectories that are not watched, in addition to those with a leading dot.
        #[serde(with = "As::<Vec<FileName>>")]
        pub ignore: Vec<String> = IGNORED.map(str::to_owned).to_vec(),
        /// Detects changes by polling instead of inotify, for network file systems and directories
        /// shared with a virtual machine.
        pub polling: bool = false,
        /// Whether pages in a browser reload after a change.
        pub live_reload: bool = true,
        /// Files of the configuration, in addition to the main one.
        #[serde(skip)]
        pub configuration_files: Vec<PathBuf> = Vec::new(),
    }
}
