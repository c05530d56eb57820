//! `sandbox` of an app: what its PHP cannot reach.

use super::table::table;
use crate::scalar::FilePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sandbox: the level alone, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum SandboxEntry {
    /// The level alone.
    Level(SandboxLevel),
    /// A table.
    Table(Sandbox),
}

/// How much PHP is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SandboxLevel {
    /// Not at all, except by its user.
    Off,
    /// To the app's directory, the system's programs and libraries, and temporary directories.
    Default,
    /// The same, with the app's directory read-only, without programs, and without connections that
    /// are not listed.
    Strict,
}

table! {
    /// What PHP and the programs that it starts can reach, by Landlock and seccomp.
    pub(crate) struct Sandbox {
        /// How much PHP is confined: `"off"`, `"default"` or `"strict"`.
        pub(crate) level: SandboxLevel = SandboxLevel::Default,
        /// Further files and directories that PHP may read, and run programs from with `level = "default"`.
        #[schemars(extend("x-alias" = ["open_basedir", "ReadOnlyPaths", "BindReadOnlyPaths"]))]
        pub(crate) read_paths: Vec<FilePath> = Vec::new(),
        /// Further files and directories that PHP may read and write.
        #[schemars(extend("x-alias" = ["ReadWritePaths", "BindPaths"]))]
        pub(crate) write_paths: Vec<FilePath> = Vec::new(),
        /// TCP ports that PHP may connect to with `level = "strict"`, such as 3306. Unix sockets are not
        /// restricted.
        #[schemars(inner(range(min = 1)), extend("x-alias" = ["SocketBindAllow", "IPAddressAllow"]))]
        pub(crate) connect_ports: Vec<u16> = Vec::new(),
    }
}
