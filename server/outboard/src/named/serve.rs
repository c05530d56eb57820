//! The named server itself: `outboard serve --name NAME`, in the foreground or in the background.
//!
//! Started by the service manager or by [`super::start`]. In the background its standard output
//! and error are pipes to the command that started it until it is ready, so errors go
//! there. The last line reports that it is ready; then both are redirected to its log.

use super::directories::{self, Directories};
use super::{Named, pid_file::PidFile};
use crate::notify::{self, ServiceManager};
use crate::php_hosts::with_versions;
use crate::serve::ServeArguments;
use crate::serve::{announce, host_binary, run_until_stopped, with_user};
use crate::terminal::{Terminal, say};
use crate::upgrade::{self, Inheritance};
use outboard_config::{Config, Diagnostics, Log, LogTarget, Open};
use outboard_gateway::server::{AdminSocket, Options};
use outboard_gateway::server_event::{Ready, ServerEvent};
use serde_json::json;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

/// Serves until it is stopped.
pub(crate) fn run(name: &str, arguments: &ServeArguments, terminal: &Terminal) -> ExitCode {
    let server =
        match Directories::of(&arguments.dirs).and_then(|directories| directories.server(name)) {
            Ok(server) => server,
            Err(message) => return terminal.fail(&message, 2),
        };
    let held = directories::make_run_dir(&server.run_dir).and_then(|()| {
        let cannot = |error| format!("{}: {error}", server.pid_file().display());
        let path = server.pid_file();
        match arguments.take_over {
            true => PidFile::of_predecessor(&path).map(Some),
            false => PidFile::take(&path),
        }
        .map_err(cannot)
    });
    let pid_file = match held {
        Ok(Some(pid_file)) => Rc::new(RefCell::new(Some(pid_file))),
        Ok(None) => return terminal.fail(&format!("{name} is already running"), 1),
        Err(message) => return terminal.fail(&message, 1),
    };
    let code = match options(server, arguments, terminal, pid_file.clone()) {
        Ok(options) => run_until_stopped(options, terminal),
        Err(message) => terminal.fail(&message, 1),
    };
    drop(pid_file.take());
    code
}

fn options(
    server: Named,
    arguments: &ServeArguments,
    terminal: &Terminal,
    held: HeldPidFile,
) -> Result<Options, String> {
    let launch = upgrade::launch()?;
    if arguments.detach {
        leave_terminal(&server)?;
    }
    let Inheritance { starter, predecessor, estate } =
        upgrade::inherit(arguments.take_over, launch)?;
    let manager = ServiceManager::of_environment();
    let (name, admin_socket) = (server.name.clone(), server.admin_socket());
    let pid_file = server.pid_file();
    let (detach, take_over) = (arguments.detach, arguments.take_over);
    let (console, log) = (*terminal, server.log.clone());
    Ok(Options {
        load: with_versions(with_user(
            Arc::new(move |open| load(&server, detach, open)),
            arguments.user.clone(),
        )),
        name: Some(name),
        admin_socket: Some(AdminSocket::Always(admin_socket)),
        host_binary: host_binary(arguments),
        spawner: std::env::current_exe().ok(),
        pid_file: Some(pid_file),
        sockets: estate.sockets,
        files: estate.files,
        link: estate.link,
        starter,
        predecessor,
        notify: Rc::new(move |event| {
            pass_on_pid_file(&held, take_over, event);
            manager.on_event(event);
            match event {
                ServerEvent::Ready(ready) if detach && !take_over => {
                    say_ready_and_turn_away(ready, &log)
                }
                ServerEvent::Ready(ready) => announce(ready, &console),
                _ => {}
            }
        }),
        alive_every_ms: notify::alive_every_ms(),
    })
}

/// The pid file, until a successor has it.
type HeldPidFile = Rc<RefCell<Option<PidFile>>>;

/// In an upgrade the file is left by the old server, and acquired by the new one.
fn pass_on_pid_file(held: &HeldPidFile, take_over: bool, event: &ServerEvent) {
    match event {
        ServerEvent::Ready(_) if take_over => {
            if let Some(Err(error)) = held.borrow_mut().as_mut().map(PidFile::lock) {
                eprintln!("outboard: the pid file cannot be locked: {error}");
            }
        }
        ServerEvent::HandedOver { .. } => drop(held.take().map(PidFile::leave)),
        _ => {}
    }
}

/// A new session has no terminal that could hang up.
fn leave_terminal(server: &Named) -> Result<(), String> {
    let directory = server.log.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("the log directory {}: {error}", directory.display()))?;
    open_log(&server.log)?;
    // It fails for the leader of a process group, which was not started by a shell's command.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/").map_err(|error| format!("cannot change to /: {error}"))
}

fn open_log(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| format!("the log {} cannot be written: {error}", path.display()))
}

/// The configuration; in the background standard output goes to the log file.
fn load(server: &Named, detach: bool, open: Open<'_>) -> Result<Config, Diagnostics> {
    let mut config = Config::load_by(&server.config, open)?;
    if detach {
        let apps = config.apps.iter_mut().map(|app| &mut app.log);
        for log in std::iter::once(&mut config.log).chain(apps) {
            log_to_file(log, &server.log);
        }
    }
    Ok(config)
}

fn log_to_file(log: &mut Log, path: &Path) {
    for target in [&mut log.access.path, &mut log.error.path, &mut log.slow.path] {
        if matches!(target, LogTarget::Stdout | LogTarget::Stderr) {
            *target = LogTarget::File(path.to_owned());
        }
    }
}

/// The starting command reads until its pipes are closed.
fn say_ready_and_turn_away(ready: &Ready, log: &Path) {
    say!("{}", json!({"pid": std::process::id(), "listeners": ready.listeners}));
    // The log was writable a event ago; if this fails, only further output is lost.
    if let Ok(log) = open_log(log) {
        let _ = rustix::stdio::dup2_stdout(&log);
        let _ = rustix::stdio::dup2_stderr(&log);
    }
}
