//! Arguments: named servers: `init`, `start`, `list`, `shutdown` and those that name one.

use super::admin::AdminArguments;
use clap::Args;
use std::path::PathBuf;

/// The directories of named servers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct InstanceDirs {
    /// The configuration directory [default: ./outboard.d, else /etc/outboard].
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The directory of pid files and admin sockets.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

/// Named servers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct InstanceSelector {
    /// The named servers [default: all].
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) dirs: InstanceDirs,
}

/// Named servers, or the server of an admin socket.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    pub(crate) pick: InstanceSelector,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The name of the server.
    pub(crate) name: String,
    /// The kind of application.
    #[arg(long, value_enum, default_value = "classic")]
    pub(crate) template: Template,
    /// Serve the WordPress in --dir: write a configuration for it and add must-use plugins, which have
    /// pages start from a snapshot and purge the page cache.
    #[arg(long, conflicts_with = "template")]
    pub(crate) wordpress: bool,
    /// The directory of the application [default: ./NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration directory [default: ./outboard.d].
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The directory of the PHP package `outboard/runtime`, for controllers and views [default: the
    /// one installed with this program].
    #[arg(long, value_name = "DIR")]
    pub(crate) package: Option<PathBuf>,
    /// Its address [default: the first free port from 8080].
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
}

/// Templates of `outboard init`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Template {
    /// A script that runs once per request.
    Classic,
    /// A worker script.
    Worker,
    /// Controllers and views.
    Mvc,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) dirs: InstanceDirs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShutdownArguments {
    /// Only servers with pid files in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}
