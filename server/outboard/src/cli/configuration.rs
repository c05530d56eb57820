//! Arguments: configuration files: `check`, `config` and `import`.

use super::admin::AdminArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The configuration file, or the directory of an `outboard.toml`.
    #[arg(default_value = "outboard.toml")]
    file: PathBuf,
    /// The same, as for `outboard serve`.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Print errors and warnings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArguments {
    pub(crate) fn file(&self) -> PathBuf {
        let file = self.config.as_ref().unwrap_or(&self.file);
        if file.is_dir() { file.join("outboard.toml") } else { file.clone() }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print every key with its value. Secrets are replaced by `[redacted]`.
    Show(ConfigShowArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShowArguments {
    /// The configuration file.
    #[arg(default_value = "outboard.toml", conflicts_with_all = ["running", "admin"])]
    pub(crate) file: PathBuf,
    /// The configuration of the running server instead of a file; implied by --admin.
    #[arg(long)]
    pub(crate) running: bool,
    /// Print where each value comes from: file and line, environment, default or command line.
    #[arg(long)]
    pub(crate) origin: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The server whose configuration FILE is [default: recognised by the content].
    #[arg(value_name = "nginx|httpd|FILE")]
    pub(crate) first: PathBuf,
    /// The file.
    pub(crate) file: Option<PathBuf>,
    /// Write the configuration to this file, which must not exist [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print configuration and list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
