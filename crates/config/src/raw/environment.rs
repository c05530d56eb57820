//! `environment` and `[development]`: what the server is for.

use crate::scalar::{FileName, FilePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a server is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Environment {
    /// To serve visitors.
    #[default]
    Production,
    /// To write code against: one worker an app, changes seen at once, errors shown.
    Development,
}

/// What is special with `environment = "development"`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Development {
    /// Folders whose files are watched; none: those of each app, its root or the project around
    /// it, and of its worker's script.
    pub(crate) watch: Vec<FilePath>,
    /// Names of folders in them that are not looked into, besides those with a leading dot.
    pub(crate) ignore: Vec<FileName>,
    /// Whether files are looked at again and again instead of having the kernel tell: for network
    /// file systems and folders shared with a virtual machine.
    pub(crate) polling: bool,
    /// Whether pages in a browser reload themselves after a change.
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
