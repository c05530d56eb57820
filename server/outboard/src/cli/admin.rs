//! Arguments: a running server, by its admin socket: bans, upstreams, snapshots, OPcache.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct AdminArguments {
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BanArguments {
    /// An address, or a network such as 198.51.100.0/24.
    pub(crate) network: String,
    /// How long, such as 90s, 10m, 1h or 7d [default: until `outboard unban`].
    #[arg(long = "for", value_name = "TIME", value_parser = crate::ban_time::seconds)]
    pub(crate) seconds: Option<u64>,
    /// Why, for `outboard bans` and the log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UnbanArguments {
    /// The address or network as it was banned.
    pub(crate) network: String,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UpstreamsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<UpstreamsAction>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamsAction {
    /// Send no new requests to a server; those in progress finish. A reload does not change that.
    Drain(UpstreamServerArguments),
    /// Send requests to a drained server again.
    Enable(UpstreamServerArguments),
}

#[derive(Debug, Args)]
pub(crate) struct UpstreamServerArguments {
    /// The name of the upstream.
    pub(crate) upstream: String,
    /// The server as configured, or as `outboard upstreams` names it.
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotAction {
    /// Requests that begin after this command are served by new snapshots. Those in progress finish.
    Retire {
        /// Only those of this app [default: of all].
        app: Option<String>,
        /// Only those that depend on this key (Outboard\snapshot_depends).
        #[arg(long)]
        key: Option<String>,
        #[command(flatten)]
        admin: AdminArguments,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpcacheAction {
    /// Memory, scripts and restarts of each app's OPcache.
    Status(AdminArguments),
    /// Restart PHP with an empty OPcache; no request is lost.
    Reset(AdminArguments),
}
