//! The command line: arguments and help texts.

use crate::bench::BenchArguments;
use clap::{Args, ColorChoice, Parser, Subcommand};
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
    /// Serve a program that was written for Swoole.
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
    /// Have booted scripts start anew, of whose memory workers are forks.
    Snapshot {
        #[command(subcommand)]
        action: SnapshotAction,
    },
    /// Show the certificates that a server obtains itself: names, issuers, times and errors.
    Certificates(AdminArguments),
    /// Have this machine trust the local authority, whose certificates are for development.
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
    Bench(Box<BenchArguments>),
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
    Lab(crate::lab::LabArguments),
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

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The directory of the application, or a configuration file.
    #[arg(value_name = "DIR|FILE.toml")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, short, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) config: Option<PathBuf>,
    /// Serve the directory in development mode: changes take effect at once, pages reload, and errors
    /// are shown with their source code.
    #[arg(long, conflicts_with = "name")]
    pub(crate) dev: bool,
    /// Serve a named server in the foreground, for a service manager.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dir", "config", "admin"])]
    pub(crate) name: Option<String>,
    /// With --name: continue in the background once it is ready. Used by `outboard start`.
    #[arg(long, hide = true, requires = "name")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) dirs: InstanceDirs,
    /// Address for a directory: ADDRESS:PORT or unix:PATH [default: 127.0.0.1:8080].
    ///
    /// Port 0 selects a free port. A configuration file has `listen` instead.
    #[arg(long, short, value_name = "ADDRESS", conflicts_with = "name")]
    pub(crate) listen: Option<String>,
    /// Serve the directory as this domain, over HTTPS with a certificate that is obtained and renewed
    /// automatically. May be given more than once.
    ///
    /// This agrees to the terms of service of the certificate authority. Ports 443 and 80 are opened; port
    /// 80 redirects to HTTPS. `--listen` sets the address of HTTPS instead.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "dev", "config"])]
    pub(crate) domain: Vec<String>,
    /// With --domain: the address that the certificate authority may write to.
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) email: Option<String>,
    /// With --domain: the address of HTTP [default: port 80].
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) listen_http: Option<String>,
    /// With --domain: the URL of the directory of another ACME authority, or `local`.
    #[arg(long, value_name = "URL", requires = "domain")]
    pub(crate) acme_directory: Option<String>,
    /// With --domain: a certificate (PEM) that is trusted for the connection to the ACME authority.
    #[arg(long, value_name = "FILE", requires = "domain")]
    pub(crate) acme_ca: Option<PathBuf>,
    /// With --domain: the directory of accounts, keys and certificates [default:
    /// /var/lib/outboard/certificates, or ~/.local/share/outboard/certificates].
    #[arg(long, value_name = "DIR", requires = "domain")]
    pub(crate) acme_storage: Option<PathBuf>,
    /// User that PHP runs as if root starts the server, instead of the configured one; `root` runs
    /// everything as root.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The admin socket, for `outboard status`.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
    /// Take over the sockets of the server at the other end of standard input. Used by `outboard upgrade`.
    #[arg(long, hide = true)]
    pub(crate) take_over: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The program.
    #[arg(value_name = "FILE.php")]
    pub(crate) script: PathBuf,
    /// Its arguments.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Address to listen on instead of the program's own.
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// A setting of php.ini, as in `php -d swoole.use_shortname=Off`.
    #[arg(long = "define", short = 'd', value_name = "NAME[=VALUE]")]
    pub(crate) ini: Vec<String>,
    /// User that the program runs as if root starts it [default: www-data, or nobody].
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The admin socket, for `outboard status`.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Do not trust it any more.
    #[arg(long)]
    pub(crate) remove: bool,
    /// The directory of certificates [default: /var/lib/outboard/certificates for root, otherwise
    /// ~/.local/share/outboard/certificates].
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The configuration file.
    #[arg(default_value = "outboard.toml")]
    pub(crate) file: PathBuf,
    /// Print errors and warnings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Asks a running server. A request is handled from a snapshot if it agrees with what was read. Exit code
    /// 0: all scripts that ask for a snapshot have one, 1: one has none, for the reason that is printed.
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

#[derive(Debug, Args)]
pub(crate) struct UnbanArguments {
    /// The address or network as it was banned.
    pub(crate) network: String,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Hit rate and memory of the cache.
    Stats(CacheSelector),
    /// Cached pages, at most 1000.
    List {
        #[command(flatten)]
        pick: CacheSelector,
        /// Only URLs or paths with this prefix.
        #[arg(long)]
        prefix: Option<String>,
    },
    /// All variants of a page, with their headers.
    Get {
        #[command(flatten)]
        pick: CacheSelector,
        /// The URL, or its path with the query.
        url: String,
    },
    /// Render pages of recent hits again, and report those that depend on the visitor.
    ///
    /// Exit code 0: none was found, 1: some were found, or the request failed.
    Audit {
        #[command(flatten)]
        pick: CacheSelector,
        /// Maximum number of pages.
        #[arg(long, value_name = "COUNT", default_value_t = 16)]
        sample: usize,
    },
    /// Purge pages; when this returns, none of them is served any more.
    Purge(PurgeArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpcacheAction {
    /// Memory, scripts and restarts of each app's OPcache.
    Status(AdminArguments),
    /// Restart PHP with an empty OPcache; no request is lost.
    Reset(AdminArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CacheSelector {
    /// The app [default: every app with a cache].
    #[arg(long, value_name = "NAME")]
    pub(crate) app: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// A URL, or a path with its query string for every host.
    #[arg(required_unless_present_any = ["prefix", "tag", "all"])]
    pub(crate) url: Option<String>,
    /// All URLs or paths with this prefix.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// All pages with this tag. May be given more than once.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// All pages.
    #[arg(long)]
    pub(crate) all: bool,
    /// Serve the old pages while new ones are rendered.
    #[arg(long)]
    pub(crate) soft: bool,
    #[command(flatten)]
    pub(crate) pick: CacheSelector,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvAction {
    /// Print a value. Exit code 3: the record does not exist.
    Get {
        #[command(flatten)]
        pick: KvSelector,
        /// The record's key.
        id: String,
    },
    /// Write a record.
    Put {
        #[command(flatten)]
        pick: KvSelector,
        /// The record's key.
        id: String,
        /// Its value [default: read from standard input].
        value: Option<String>,
        /// Its lifetime in milliseconds.
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
    },
    /// Delete a record, if it exists.
    Delete {
        #[command(flatten)]
        pick: KvSelector,
        /// The record's key.
        id: String,
    },
    /// Print records in the order of their keys, one per line: key, tab, value, with \xNN for bytes
    /// that are not printable ASCII.
    Scan {
        #[command(flatten)]
        pick: KvSelector,
        /// The first key; empty: from the start.
        #[arg(default_value = "")]
        start: String,
        /// The key to end before.
        end: Option<String>,
    },
    /// Contents and activity of the store.
    Stats {
        #[command(flatten)]
        pick: KvSelector,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a consistent copy of all records of a namespace to a file, while the server runs.
    Backup {
        #[command(flatten)]
        pick: KvSelector,
        /// The file; it appears only when it is complete.
        file: PathBuf,
    },
    /// Restore all records of a backup; records that are not in it remain.
    Restore {
        #[command(flatten)]
        pick: KvSelector,
        /// The file.
        file: PathBuf,
    },
    /// Merge all files of a namespace, to free the space of deleted records.
    Compact {
        #[command(flatten)]
        pick: KvSelector,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KvSelector {
    /// The namespace [default: `default`].
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
