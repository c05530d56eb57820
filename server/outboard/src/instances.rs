//! Arguments that name servers of a configuration directory.

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
