//! `outboard run`: serves a program that starts a server itself.
//!
//! The program runs once up to its server's start, by `outboard-php run`; what its server is to be
//! becomes a configuration, and the server starts with that. A program without a server has run to
//! its end by then.
//!
//! Invariant: the private directory has everything that belongs to this run, and goes with it.

mod control;

use crate::notify::{self, ServiceManager};
use crate::php_hosts;
use crate::serve::{announce, run_until_stopped};
use crate::terminal::{Terminal, say};
use clap::Args;
use outboard_config::Config;

use outboard_gateway::server::{AdminSocket, Options};
use outboard_gateway::server_event::ServerEvent;
use outboard_programs::{Configuration, DETACHED, Described, PrivateDir, describe};
use outboard_spawner::users;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::sync::Arc;

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
    /// A setting of php.ini, as in `php -d memory_limit=1G`.
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

pub(crate) fn run(arguments: &RunArguments, terminal: &Terminal) -> ExitCode {
    match prepare(arguments) {
        Ok(Prepared::Ended(code)) => code,
        Ok(Prepared::Background) => start_in_background(terminal),
        Ok(Prepared::Server(configuration, directory)) => {
            serve(arguments, *configuration, directory, terminal)
        }
        Err(message) => terminal.fail(&message, 2),
    }
}

/// What the first run of the program has shown.
enum Prepared {
    /// It has no server.
    Ended(ExitCode),
    /// Its server is to continue in the background, and this process is not the one to do so.
    Background,
    Server(Box<Configuration>, PrivateDir),
}

fn prepare(arguments: &RunArguments) -> Result<Prepared, String> {
    let script = std::path::absolute(&arguments.script)
        .map_err(|error| format!("{}: {error}", arguments.script.display()))?;
    if !script.is_file() {
        return Err(format!("there is no file {}", script.display()));
    }
    let user = user_of(arguments, None)?;
    let host = arguments.php_host.clone().unwrap_or_else(php_hosts::default);
    let ini = arguments.ini.iter().map(|text| ini_setting(text)).collect::<Vec<_>>();
    let described =
        describe(&host, &script, &arguments.arguments, user.as_ref().map(User::ids), &ini)?;
    let description = match described {
        Described::Ended(code) => return Ok(Prepared::Ended(code)),
        Described::Server(description) => description,
    };
    let is_detached = std::env::var_os(DETACHED).is_some();
    if description.is_on("daemonize") && !is_detached {
        return Ok(Prepared::Background);
    }
    let user = match description.text("user") {
        Some(named) => user_of(arguments, Some(named))?,
        None => user,
    };
    let owner = user.as_ref().map(User::ids);
    let directory = PrivateDir::create(owner, gateway_user())
        .map_err(|error| format!("a directory for this run cannot be created: {error}"))?;
    let name = user.map(|user| user.name);
    let mut configuration =
        Configuration::of(&description, &script, &arguments.arguments, &directory, name)?;
    configuration.set_listen(arguments.listen.as_deref());
    configuration.set_ini(&ini);
    Ok(Prepared::Server(Box::new(configuration), directory))
}

/// A name alone stands for 1, as for `php -d` (`cli_main.c`).
fn ini_setting(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.trim().to_owned(), value.trim().trim_matches('"').to_owned())
}

/// Who the program runs as.
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl User {
    fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }
}

/// `None`: as who this process is. Root hands programs over to another user, as `outboard serve` does.
fn user_of(arguments: &RunArguments, named: Option<&str>) -> Result<Option<User>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let named = arguments.user.as_deref().or(named);
    let candidates = named.map_or_else(|| vec!["www-data", "nobody"], |name| vec![name]);
    let mut failed = String::new();
    for name in candidates {
        match users::user(name, None) {
            Ok(user) => {
                let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
                return Ok(Some(User { name: name.to_owned(), uid, gid }));
            }
            Err(message) => failed = message,
        }
    }
    Err(failed)
}

/// Who the server becomes, which no program may run as.
fn gateway_user() -> Option<u32> {
    ["outboard", "nobody"]
        .iter()
        .find_map(|name| users::user(name, None).ok().map(|user| user.uid.as_raw()))
}

fn serve(
    arguments: &RunArguments,
    configuration: Configuration,
    directory: PrivateDir,
    terminal: &Terminal,
) -> ExitCode {
    let is_detached = std::env::var_os(DETACHED).is_some();
    if is_detached {
        // It fails for the leader of a process group, which this is not.
        let _ = rustix::process::setsid();
    }
    if let Some(notice) = configuration.notice() {
        eprintln!("{notice}");
    }
    let socket = arguments.admin.clone().unwrap_or_else(|| directory.path("admin.sock"));
    let commands = match control::open_pipe(&directory.path("control")) {
        Ok(pipe) => Cell::new(Some(pipe)),
        Err(error) => return terminal.fail(&format!("the program's control pipe: {error}"), 1),
    };
    let controlled = socket.clone();
    let (console, manager) = (*terminal, ServiceManager::of_environment());
    // Opened before the server gives up root's privileges.
    let pid_file = configuration.pid_file.clone();
    let opened = open("pid_file", pid_file.as_deref(), true).and_then(|pid_file| {
        let log = configuration.log_file.as_deref().filter(|_| is_detached);
        Ok((pid_file, open("log_file", log, false)?))
    });
    let (written_pid_file, log) = match opened {
        Ok((pid_file, log)) => (Cell::new(pid_file), Cell::new(log)),
        Err(message) => return terminal.fail(&message, 1),
    };
    let (text, place) = (configuration.text, directory.path("outboard.toml"));
    let options = Options {
        load: Arc::new(move |_| Config::parse(&text, &place)),
        name: None,
        admin_socket: Some(AdminSocket::Always(socket)),
        host_binary: arguments.php_host.clone().unwrap_or_else(php_hosts::default),
        spawner: std::env::current_exe().ok(),
        pid_file,
        sockets: Vec::new(),
        files: Vec::new(),
        starter: None,
        predecessor: None,
        link: None,
        notify: Rc::new(move |event| {
            if let ServerEvent::Ready(ready) = event {
                announce(ready, &console);
                write_pid(written_pid_file.take());
                let listening = commands.take().map(|pipe| control::listen(pipe, &controlled));
                if let Some(Err(error)) = listening {
                    eprintln!("the program cannot control its server: {error}");
                }
                if let Some(log) = log.take() {
                    redirect_output(&log);
                }
            }
            manager.on_event(event);
        }),
        alive_every_ms: notify::alive_every_ms(),
    };
    let code = run_until_stopped(options, terminal);
    drop(directory);
    code
}

/// # Errors
/// The file cannot be created or opened.
fn open(option: &str, path: Option<&Path>, is_emptied: bool) -> Result<Option<File>, String> {
    let Some(path) = path else { return Ok(None) };
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(!is_emptied).truncate(is_emptied);
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) => Err(format!("{option} {}: {error}", path.display())),
    }
}

fn write_pid(file: Option<File>) {
    if let Some(Err(error)) = file.map(|mut file| write!(file, "{}", std::process::id())) {
        eprintln!("pid_file: {error}");
    }
}

/// The command that has started this server reads its output until here.
fn redirect_output(log: &File) {
    let _ = rustix::stdio::dup2_stdout(log);
    let _ = rustix::stdio::dup2_stderr(log);
}

/// `daemonize`: the same command again, which is left alone once it is ready.
fn start_in_background(terminal: &Terminal) -> ExitCode {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("outboard"));
    let child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return terminal.fail(&format!("cannot start in the background: {error}"), 1),
    };
    let mut is_ready = false;
    for line in child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
        let Ok(line) = line else { break };
        is_ready |= line.contains("listening on ");
        say!("{line}");
    }
    if is_ready {
        return ExitCode::SUCCESS;
    }
    // Its error is on the terminal already.
    let _ = child.wait();
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests;
