//! The command line: its commands and their help texts. The files beside it have the arguments, by subject.

mod admin;
mod cache;
mod configuration;
mod doctor;
mod kv;
mod named;
mod serve;

pub(crate) use admin::{
    AdminArguments, BanArguments, OpcacheAction, SnapshotAction, UnbanArguments, UpstreamsAction,
    UpstreamsArguments,
};
pub(crate) use cache::{CacheAction, PurgeArguments};
pub(crate) use configuration::{
    CheckArguments, ConfigAction, ConfigShowArguments, ImportArguments,
};
pub(crate) use doctor::{DoctorArguments, DoctorCommand, StateArguments};
pub(crate) use kv::{KvAction, KvSelector};
pub(crate) use named::{
    InitArguments, InstanceDirs, InstanceSelector, ListArguments, ServerArguments,
    ShutdownArguments, Template,
};
pub(crate) use serve::{RunArguments, ServeArguments, TrustArguments};

use clap::{ColorChoice, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// An application server for PHP.
///
/// Serve a directory:         outboard serve ./my-site
/// Serve a configuration:     outboard serve --config outboard.toml
/// Show its status:           outboard status
/// Named servers:             outboard init shop; outboard start shop; outboard list
#[derive(Debug, Parser)]
#[command(name = "outboard", version, verbatim_doc_comment)]
pub(crate) struct Outboard {
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a PHP application.
    ///
    /// DIR is served with its files, the index.php of directories, and the index.php of the root for
    /// all other requests; a `public` directory in it is used as the root. FILE.toml is a
    /// configuration. The default is `outboard.toml` of the current directory, or else the current
    /// directory itself.
    ///
    /// For development: outboard serve --dev ./my-site
    Serve(ServeArguments),
    /// Serve a program that starts a server itself.
    ///
    /// The program runs as with PHP's command line and the extension, which need not be there. It is
    /// run once to learn the address and the options of its server; then workers are started. Without
    /// a server it runs to its end.
    Run(RunArguments),
    /// Validate a configuration file with its included files, and print errors with their positions.
    ///
    /// Exit codes: 0 the configuration is valid, also with warnings; 2 it is not, or it cannot be read.
    Check(CheckArguments),
    /// Show the effective configuration of a file or of a running server.
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Write an outboard.toml for a configuration of nginx or Apache httpd.
    ///
    /// What could not be carried over is listed on standard error, by file and line with the reason.
    /// Exit codes: 0 a configuration was written, 2 the file cannot be read or is not understood.
    Import(ImportArguments),
    /// Start named servers, each from its file NAME.toml, and return when they are ready.
    ///
    /// If a server does not start, the error is printed and the exit code is not 0.
    Start(InstanceSelector),
    /// Restart named servers.
    ///
    /// A server whose configuration has errors continues to run.
    Restart(InstanceSelector),
    /// Create a named server: a commented configuration file and an application.
    Init(InitArguments),
    /// List the named servers.
    List(ListArguments),
    /// Stop all named servers of this user, of every configuration directory.
    Shutdown(ShutdownArguments),
    /// Show the status of a running server.
    ///
    /// Exit codes for named servers: 0 running, 1 dead with a pid file left behind, 3 stopped, 4
    /// unknown.
    Status(ServerArguments),
    /// Reload the configuration and restart PHP, without losing a request.
    ///
    /// If that fails, nothing changes and the error is printed. SIGHUP does the same.
    Reload(ServerArguments),
    /// Replace a running server by the program that is installed now, without losing a request.
    ///
    /// The new program takes over the listening sockets; the old one completes its requests. If it does
    /// not start, the old one goes on and the error is printed. SIGUSR2 does the same.
    Upgrade(ServerArguments),
    /// Finish running requests and stop. SIGTERM does the same.
    Stop(ServerArguments),
    /// Refuse the clients of an address or a network.
    ///
    /// Connections are closed before TLS, and requests on open ones get 403. Programs such as fail2ban
    /// can call this. A ban survives a reload and, with `[bans] file`, a restart.
    Ban(BanArguments),
    /// Admit the clients of a banned address or network again.
    ///
    /// Exit code 1: it was not banned.
    Unban(UnbanArguments),
    /// List the banned networks.
    Bans(AdminArguments),
    /// List the servers of upstreams, or drain one.
    Upstreams(UpstreamsArguments),
    /// Inspect or purge the page cache.
    Cache {
        #[command(subcommand)]
        action: CacheAction,
    },
    /// Show OPcache usage, or reset it.
    Opcache {
        #[command(subcommand)]
        action: OpcacheAction,
    },
    /// Retire snapshots of booted scripts, so that the next request boots them again.
    Snapshot {
        #[command(subcommand)]
        action: SnapshotAction,
    },
    /// Show the certificates that a server obtains itself: names, issuers, times and errors.
    Certificates(AdminArguments),
    /// Add the local authority, whose certificates are for development, to those that this machine trusts.
    ///
    /// Adds it to the certificates of the system, which needs root, and to those of the browsers of this
    /// user.
    Trust(TrustArguments),
    /// Read, write and maintain the entity store.
    Kv {
        #[command(subcommand)]
        action: KvAction,
    },
    /// Diagnose an application.
    Doctor(DoctorArguments),
    /// Benchmark a server: send requests and report throughput, latency and errors.
    Bench(crate::tools::ToolArguments),
    /// Show a running server in the browser: rates, durations, workers, slow requests, flame graphs.
    ///
    /// Prints a URL of this machine, which is valid once, and serves the page until Ctrl-C. Over SSH, forward
    /// its port: ssh -L 9180:127.0.0.1:9180 HOST outboard dashboard --port 9180
    Dashboard(crate::dashboard::DashboardArguments),
    /// Profile PHP in a running server: a flame graph of its functions.
    ///
    /// Workers are sampled from outside, without an extension. Reading another process requires the
    /// permissions of its user, or of root (ptrace(2)).
    Profile(crate::profile::ProfileArguments),
    /// Compare Outboard with other PHP servers on this machine.
    ///
    /// Runs outboard-lab, a separate program; `outboard lab --help` shows its commands.
    Lab(crate::tools::ToolArguments),
    /// Start PHP for a gateway that has dropped root's privileges. Used by `outboard serve`.
    #[command(hide = true)]
    Spawner,
    /// Start a newer program for a gateway that has dropped root's privileges. Used by `outboard serve`.
    #[command(hide = true)]
    Starter {
        /// The title and the arguments of `outboard serve`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print the JSON schema of the configuration file.
    Schema,
    /// Print the completion script of a shell.
    ///
    /// For bash: outboard completions bash > ~/.local/share/bash-completion/completions/outboard
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one per command.
    Man {
        /// The directory; it is created if missing.
        dir: PathBuf,
    },
}

#[cfg(test)]
mod tests;
