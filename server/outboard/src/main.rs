//! `outboard`: the command line. It parses arguments, calls the crates, and prints the result. The file of a command
//! has its arguments.
//!
//! Exit codes: 0 success, 1 failure, 2 user error (arguments, configuration, an address in
//! use). `status` of a named server has those of the Linux Standard Base.

#![forbid(unsafe_code)]
// `println!` panics when its reader has gone; `terminal::say!` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout))]

mod admin;
mod admin_client;
mod ban_time;
mod bans;
mod cache;
mod certificates;
mod check;
mod config;
mod dashboard;
mod data_directories;
mod doctor;
mod host_machine;
mod import;
mod init;
mod instances;
mod kv;
mod manual;
mod mistyped;
mod named;
mod notify;
mod opcache;
mod php_hosts;
mod process;
mod profile;
mod reload;
mod run;
mod serve;
mod snapshot;
mod status;
mod target;
mod terminal;
mod tools;
mod trust;
mod upgrade;
mod upstreams;

use clap::{ColorChoice, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use target::Target;

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
    Serve(serve::ServeArguments),
    /// Serve a program that starts a server itself.
    ///
    /// The program runs as with PHP's command line and the extension, which need not be there. It is
    /// run once to learn the address and the options of its server; then workers are started. Without
    /// a server it runs to its end.
    Run(run::RunArguments),
    /// Validate a configuration file with its included files, and print errors with their positions.
    ///
    /// Exit codes: 0 the configuration is valid, also with warnings; 2 it is not, or it cannot be read.
    Check(check::CheckArguments),
    /// Show the effective configuration of a file or of a running server.
    Config {
        #[command(subcommand)]
        action: config::ConfigAction,
    },
    /// Write an outboard.toml for a configuration of nginx or Apache httpd.
    ///
    /// What could not be carried over is listed on standard error, by file and line with the reason.
    /// Exit codes: 0 a configuration was written, 2 the file cannot be read or is not understood.
    Import(import::ImportArguments),
    /// Start named servers, each from its file NAME.toml, and return when they are ready.
    ///
    /// If a server does not start, the error is printed and the exit code is not 0.
    Start(instances::InstanceSelector),
    /// Restart named servers.
    ///
    /// A server whose configuration has errors continues to run.
    Restart(instances::InstanceSelector),
    /// Create a named server: a commented configuration file and an application.
    Init(init::InitArguments),
    /// List the named servers.
    List(named::show::ListArguments),
    /// Stop all named servers of this user, of every configuration directory.
    Shutdown(named::stop::ShutdownArguments),
    /// Show the status of a running server.
    ///
    /// Exit codes for named servers: 0 running, 1 dead with a pid file left behind, 3 stopped, 4
    /// unknown.
    Status(target::ServerArguments),
    /// Reload the configuration and restart PHP, without losing a request.
    ///
    /// If that fails, nothing changes and the error is printed. SIGHUP does the same.
    Reload(target::ServerArguments),
    /// Replace a running server by the program that is installed now, without losing a request.
    ///
    /// The new program takes over the listening sockets; the old one completes its requests. If it does
    /// not start, the old one goes on and the error is printed. SIGUSR2 does the same.
    Upgrade(target::ServerArguments),
    /// Finish running requests and stop. SIGTERM does the same.
    Stop(target::ServerArguments),
    /// Refuse the clients of an address or a network.
    ///
    /// Connections are closed before TLS, and requests on open ones get 403. Programs such as fail2ban
    /// can call this. A ban survives a reload and, with `[bans] file`, a restart.
    Ban(bans::BanArguments),
    /// Admit the clients of a banned address or network again.
    ///
    /// Exit code 1: it was not banned.
    Unban(bans::UnbanArguments),
    /// List the banned networks.
    Bans(admin::AdminArguments),
    /// List the servers of upstreams, or drain one.
    Upstreams(upstreams::UpstreamsArguments),
    /// Inspect or purge the page cache.
    Cache {
        #[command(subcommand)]
        action: cache::CacheAction,
    },
    /// Show OPcache usage, or reset it.
    Opcache {
        #[command(subcommand)]
        action: opcache::OpcacheAction,
    },
    /// Order processes of apps, such as queue workers, to end and begin again.
    Process {
        #[command(subcommand)]
        action: process::ProcessAction,
    },
    /// Retire snapshots of booted scripts, so that the next request boots them again.
    Snapshot {
        #[command(subcommand)]
        action: snapshot::SnapshotAction,
    },
    /// Show the certificates that a server obtains itself: names, issuers, times and errors.
    Certificates(admin::AdminArguments),
    /// Add the local authority, whose certificates are for development, to those that this machine trusts.
    ///
    /// Adds it to the certificates of the system, which needs root, and to those of the browsers of this
    /// user.
    Trust(trust::TrustArguments),
    /// Read, write and maintain the entity store.
    Kv {
        #[command(subcommand)]
        action: kv::KvAction,
    },
    /// Diagnose an application.
    Doctor(doctor::DoctorArguments),
    /// Benchmark a server: send requests and report throughput, latency and errors.
    Bench(tools::ToolArguments),
    /// Show a running server in the browser: rates, durations, workers, slow requests, flame graphs.
    ///
    /// Prints a URL of this machine, which is valid once, and serves the page until Ctrl-C. Over SSH, forward
    /// its port: ssh -L 9180:127.0.0.1:9180 HOST outboard dashboard --port 9180
    Dashboard(dashboard::DashboardArguments),
    /// Profile PHP in a running server: a flame graph of its functions.
    ///
    /// Workers are sampled from outside, without an extension. Reading another process requires the
    /// permissions of its user, or of root (ptrace(2)).
    Profile(profile::ProfileArguments),
    /// Compare Outboard with other PHP servers on this machine.
    ///
    /// Runs outboard-lab, a separate program; `outboard lab --help` shows its commands.
    Lab(tools::ToolArguments),
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

fn main() -> ExitCode {
    execute(Outboard::try_parse().unwrap_or_else(|error| mistyped::explained(error).exit()))
}

fn execute(outboard: Outboard) -> ExitCode {
    let terminal = terminal::Terminal::new(outboard.color);
    match outboard.command {
        Command::Serve(arguments) => match &arguments.name {
            Some(name) => named::serve::run(name, &arguments, &terminal),
            None => serve::run(&arguments, &terminal),
        },
        Command::Run(arguments) => run::run(&arguments, &terminal),
        Command::Check(arguments) => check::run(&arguments, &terminal),
        Command::Config { action } => config::run(&action, &terminal),
        Command::Import(arguments) => import::run(&arguments, &terminal),
        Command::Start(pick) => named::start::run(&pick, &terminal),
        Command::Restart(pick) => named::stop::restart(&pick, &terminal),
        Command::Shutdown(arguments) => named::stop::shutdown(&arguments, &terminal),
        Command::Init(arguments) => init::run(&arguments, &terminal),
        Command::List(arguments) => named::show::list(&arguments, &terminal),
        Command::Status(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::show::status(pick, arguments.admin.json, &terminal),
            Ok(Target::Served(admin)) => status::run(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Reload(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::stop::reload(pick, &terminal),
            Ok(Target::Served(admin)) => reload::run(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Upgrade(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::stop::upgrade(pick, &terminal),
            Ok(Target::Served(admin)) => reload::upgrade(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Stop(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::stop::run(pick, &terminal),
            Ok(Target::Served(admin)) => reload::stop(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Ban(arguments) => bans::ban(&arguments, &terminal),
        Command::Unban(arguments) => bans::unban(&arguments, &terminal),
        Command::Bans(arguments) => bans::list(&arguments, &terminal),
        Command::Upstreams(arguments) => upstreams::run(&arguments, &terminal),
        Command::Cache { action } => cache::run(&action, &terminal),
        Command::Process { action } => process::run(&action, &terminal),
        Command::Snapshot { action } => snapshot::run(&action, &terminal),
        Command::Opcache { action } => opcache::run(&action, &terminal),
        Command::Certificates(arguments) => certificates::run(&arguments, &terminal),
        Command::Trust(arguments) => trust::run(&arguments, &terminal),
        Command::Kv { action } => kv::run(&action, &terminal),
        Command::Doctor(arguments) => doctor::run(&arguments, &terminal),
        Command::Bench(arguments) => {
            tools::run(Some("bench"), &arguments, outboard.color, &terminal)
        }
        Command::Dashboard(arguments) => dashboard::run(&arguments, &terminal),
        Command::Profile(arguments) => profile::run(&arguments, &terminal),
        Command::Lab(arguments) => tools::run(None, &arguments, outboard.color, &terminal),
        Command::Spawner => match outboard_spawner::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => terminal.fail(&error.to_string(), 1),
        },
        Command::Starter { arguments } => upgrade::run_starter(arguments, &terminal),
        Command::Schema => check::print_schema(),
        Command::Completions { shell } => manual::complete(shell),
        Command::Man { dir } => manual::write_pages(&dir, &terminal),
    }
}

#[cfg(test)]
mod tests;
