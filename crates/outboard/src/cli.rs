//! The arguments, and the help that teaches them.

use crate::bench::BenchArguments;
use clap::{Args, ColorChoice, Parser, Subcommand};
use std::path::PathBuf;

/// An application server for PHP: PHP computes, everything that waits lives outside PHP.
///
/// Serve a folder:            outboard serve ./my-site
/// Serve a configuration:     outboard serve --config outboard.toml
/// See what it is doing:      outboard status
/// Servers with names:        outboard init shop; outboard start shop; outboard list
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
    /// A folder is served as it is: files, index.php of folders, and index.php of the root for
    /// everything else; a `public` folder in it is recognised. A file that ends in .toml is the
    /// configuration. Without either, `outboard.toml` of the present folder is used, or else the
    /// folder itself.
    ///
    /// While you write code: outboard serve --dev ./my-site
    Serve(ServeArguments),
    /// Check a configuration file and say what is wrong with it, in place.
    Check(CheckArguments),
    /// Start named servers, each from its file NAME.toml, and return when they answer.
    ///
    /// A server that does not start says why, and the exit code is not 0.
    Start(Pick),
    /// Stop named servers and start them again.
    ///
    /// A server whose configuration is wrong is left running.
    Restart(Pick),
    /// Write a new named server: its file, with comments, and an application that runs.
    Init(InitArguments),
    /// List the named servers.
    List(ListArguments),
    /// Stop every named server of this user, of whatever configuration folder.
    Shutdown(ShutdownArguments),
    /// Show what a running server is doing.
    ///
    /// Exit codes for named servers: 0 running, 1 dead with a pid file left behind, 3 stopped, 4
    /// unknown.
    Status(ServerArguments),
    /// Start a new generation from the configuration and swap it in without losing a request.
    ///
    /// If it does not start, the present one stays and the reason is printed. SIGHUP does the
    /// same.
    Reload(ServerArguments),
    /// Finish what has begun and stop. SIGTERM does the same.
    Stop(ServerArguments),
    /// Look into the page cache, or purge it.
    Cache {
        #[command(subcommand)]
        action: CacheAction,
    },
    /// See how full the opcode caches of the apps are, or begin with empty ones.
    Opcache {
        #[command(subcommand)]
        action: OpcacheAction,
    },
    /// Read, write and look after the entity store.
    Kv {
        #[command(subcommand)]
        action: KvAction,
    },
    /// Find what is wrong with an application.
    Doctor(DoctorArguments),
    /// Measure a server: send requests and say how fast and how well they were answered.
    Bench(Box<BenchArguments>),
    /// Show where the time of a running server's PHP goes: a flame graph of its functions.
    ///
    /// Workers are looked at from outside, many times a second; they need no extension and notice
    /// nothing. Reading another process needs its user's rights, or root's (ptrace(2)).
    Profile(crate::profile::ProfileArguments),
    /// Measure Outboard and other ways of serving PHP side by side on this machine.
    ///
    /// Runs outboard-lab, a program of its own; `outboard lab --help` shows its commands.
    Lab(crate::lab::LabArguments),
    /// Start PHP for a gateway that has given up root. What `outboard serve` uses.
    #[command(hide = true)]
    Spawner,
    /// Print the JSON schema of the configuration file.
    Schema,
    /// Print what a shell needs to complete commands and options.
    ///
    /// For bash: outboard completions bash > ~/.local/share/bash-completion/completions/outboard
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command.
    Man {
        /// The folder; it is made if it is not there.
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The folder of the application, or a configuration file.
    #[arg(value_name = "DIR|FILE.toml")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, short, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) config: Option<PathBuf>,
    /// Serve the folder for development: changes are in the next answer, pages reload by
    /// themselves, errors are shown with their source.
    #[arg(long, conflicts_with = "name")]
    pub(crate) dev: bool,
    /// Serve a named server here in the foreground, as a service manager wants it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dir", "config", "admin"])]
    pub(crate) name: Option<String>,
    /// With --name: go on in the background once it serves. What `outboard start` uses.
    #[arg(long, hide = true, requires = "name")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) places: Places,
    /// Where to listen when a folder is served: ADDRESS:PORT or unix:PATH [default: 127.0.0.1:8080].
    ///
    /// Port 0 takes any. A configuration file says `listen` itself.
    #[arg(long, short, value_name = "ADDRESS", conflicts_with = "name")]
    pub(crate) listen: Option<String>,
    /// The user that PHP runs as when root starts the server, instead of the configured one; `root`
    /// insists on root.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The admin socket, for `outboard status`.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// The PHP host to use instead of the one beside this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The configuration file.
    #[arg(default_value = "outboard.toml")]
    pub(crate) file: PathBuf,
    /// Print mistakes as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(subcommand)]
    pub(crate) examination: Examination,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Examination {
    /// Name what requests leave behind in a worker, by file and line.
    ///
    /// Boots the application in worker mode, sends the requests twice, and compares what each
    /// round finds: globals, static properties and variables, what closures have captured,
    /// constants, handlers, ini values, environment, open resources. Exit code 0: nothing was
    /// left, 1: something was, or a request failed, 2: a mistake in arguments or configuration.
    State(StateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// The folder of the application: with outboard.toml, worker.php or a front controller.
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file; its first app in worker mode is examined.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A request to send, by method and path. May be given more than once.
    #[arg(long, short, value_name = "METHOD PATH", default_value = "GET /")]
    pub(crate) request: Vec<String>,
    /// Pass over what begins with this, such as `App\Cache::$`. May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) ignore: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The PHP host to use instead of the one beside this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
}

/// Where named servers are described, and where they leave their traces.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Places {
    /// The folder of the named servers' files; else ./outboard.d, else /etc/outboard.
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The folder of their pid files and admin sockets.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

/// Named servers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Pick {
    /// The named servers; all of them otherwise.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) places: Places,
}

/// Named servers, or the one behind an admin socket.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    pick: Pick,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

/// The servers that a command is for.
pub(crate) enum Meant<'a> {
    Named(&'a Pick),
    /// The one behind an admin socket.
    Served(&'a AdminArguments),
}

impl ServerArguments {
    /// Without a name, and without a folder of named servers, it is the server that
    /// `outboard serve` runs.
    ///
    /// # Errors
    /// Names and a socket at the same time.
    pub(crate) fn meant(&self) -> Result<Meant<'_>, String> {
        let pick = &self.pick;
        let says_named = !pick.names.is_empty() || pick.places.conf_dir.is_some();
        match &self.admin.admin {
            Some(_) if !pick.names.is_empty() => {
                let names = pick.names.join(", ");
                Err(format!("--admin names one server and {names} another: leave one out"))
            }
            None if says_named || crate::named::places::found().is_some() => Ok(Meant::Named(pick)),
            _ => Ok(Meant::Served(&self.admin)),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// What the server is to be called.
    pub(crate) name: String,
    /// What the application is like.
    #[arg(long, value_enum, default_value = "classic")]
    pub(crate) template: Template,
    /// The folder of the application; ./NAME otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration folder; ./outboard.d otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The folder of the PHP package `outboard/runtime`, for controllers and views; the one that
    /// came with this program otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) package: Option<PathBuf>,
    /// Where it listens; the first free port from 8080 on otherwise.
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
}

/// What `outboard init` writes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Template {
    /// A script that runs once per request.
    Classic,
    /// A script that stays.
    Worker,
    /// Controllers and views.
    Mvc,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) places: Places,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShutdownArguments {
    /// Only those whose pid files are in this folder.
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

#[derive(Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// How much is answered from the cache, and what that takes of memory.
    Stats(CachePick),
    /// The pages that are kept, 1000 at the most.
    List {
        #[command(flatten)]
        pick: CachePick,
        /// Only URLs, or paths, that begin so.
        #[arg(long)]
        prefix: Option<String>,
    },
    /// One page in all of its variants, with its headers.
    Get {
        #[command(flatten)]
        pick: CachePick,
        /// The URL, or its path with the query.
        url: String,
    },
    /// Make pages of recent hits again and report those that are not the same for everybody.
    ///
    /// Exit code 0: none was found, 1: some were, or the server could not be asked.
    Audit {
        #[command(flatten)]
        pick: CachePick,
        /// How many pages at the most.
        #[arg(long, value_name = "COUNT", default_value_t = 16)]
        sample: usize,
    },
    /// Throw pages away; when this returns, none of them is served any more.
    Purge(PurgeArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpcacheAction {
    /// Memory, scripts and restarts of each app's opcode cache.
    Status(AdminArguments),
    /// Start PHP anew with an empty opcode cache and swap it in; no request is lost.
    Reset(AdminArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CachePick {
    /// The app; every app with a cache otherwise.
    #[arg(long, value_name = "NAME")]
    pub(crate) app: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// A URL, or a path with its query for every host.
    #[arg(required_unless_present_any = ["prefix", "tag", "all"])]
    pub(crate) url: Option<String>,
    /// All URLs, or paths, that begin so.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// All pages with this tag. May be given more than once.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// All pages.
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep them in use while new ones are made.
    #[arg(long)]
    pub(crate) soft: bool,
    #[command(flatten)]
    pub(crate) pick: CachePick,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvAction {
    /// Print a value. Exit code 3: there is no such record.
    Get {
        #[command(flatten)]
        pick: KvPick,
        /// The record's name.
        id: String,
    },
    /// Write a record.
    Put {
        #[command(flatten)]
        pick: KvPick,
        /// The record's name.
        id: String,
        /// Its value; what comes on standard input otherwise.
        value: Option<String>,
        /// For how many milliseconds it is kept.
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
    },
    /// Delete a record; none being there is fine.
    Delete {
        #[command(flatten)]
        pick: KvPick,
        /// The record's name.
        id: String,
    },
    /// Print records in the order of their names, one a line: name, tab, value, with \xNN for
    /// bytes that are no printable ASCII.
    Scan {
        #[command(flatten)]
        pick: KvPick,
        /// The first name; the very first if it is empty.
        #[arg(default_value = "")]
        start: String,
        /// The name to end before.
        end: Option<String>,
    },
    /// What the store has and does.
    Stats {
        #[command(flatten)]
        pick: KvPick,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write all records of a namespace to a file, as they are at one moment, while the server
    /// goes on.
    Backup {
        #[command(flatten)]
        pick: KvPick,
        /// The file; it is there only once it is whole.
        file: PathBuf,
    },
    /// Write all records of a backup; records that are in none of it stay.
    Restore {
        #[command(flatten)]
        pick: KvPick,
        /// The file.
        file: PathBuf,
    },
    /// Merge all files of a namespace, so that deleted records take no room.
    Compact {
        #[command(flatten)]
        pick: KvPick,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KvPick {
    /// The namespace; `default` otherwise.
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
