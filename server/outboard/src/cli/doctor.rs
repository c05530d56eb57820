//! Arguments of `doctor`.

use super::admin::AdminArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(subcommand)]
    pub(crate) command: DoctorCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DoctorCommand {
    /// Find state that requests leave in a worker, with file and line.
    ///
    /// Boots the application in worker mode, sends the requests twice, and compares the state after
    /// each round: globals, static properties and variables, variables captured by closures,
    /// constants, handlers, ini values, environment, open resources. Exit code 0: no state was
    /// left, 1: state was left, or a request failed, 2: an error in arguments or configuration.
    State(StateArguments),
    /// Name what scripts read of a request before Outboard\snapshot(), with file and line.
    ///
    /// Queries a running server. A request is handled from a snapshot if it agrees with what was read. Exit code
    /// 0: all scripts that call `snapshot()` have one, 1: one has none, for the reason that is printed.
    Snapshots(AdminArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// The directory of the application, with outboard.toml, worker.php or a front controller.
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file; its first app in worker mode is examined.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A request to send, by method and path. May be given more than once.
    #[arg(long, short, value_name = "METHOD PATH", default_value = "GET /")]
    pub(crate) request: Vec<String>,
    /// Ignore findings whose names start with this, such as `App\Cache::$`. May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) ignore: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
}
