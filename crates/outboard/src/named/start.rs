//! `outboard start`: starts servers in the background and returns when they answer.
//!
//! Invariant: success is told when the server said that it serves, and not before; whatever it
//! printed instead is told otherwise.

use super::pid_file::Presence;
use super::places::make_run_dir;
use super::{Named, Told, order_each};
use crate::cli::Pick;
use crate::terminal::Terminal;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

pub(crate) fn run(pick: &Pick, terminal: &Terminal) -> std::process::ExitCode {
    order_each(pick, terminal, start)
}

/// Starts one; one that runs is left as it is.
fn start(server: &Named) -> Told {
    alone(server, || start_held(server))
}

/// Starts one that `stop` has ended. Two restarts at a time come after each other: one would end
/// what the other is starting.
pub(super) fn restart(server: &Named, stop: impl FnOnce() -> Told) -> Told {
    alone(server, || match stop() {
        told if told.code != 0 => Ok(told),
        _ => start_held(server),
    })
}

/// Waits for other commands that start it, and keeps them waiting.
fn alone(server: &Named, order: impl FnOnce() -> Result<Told, String>) -> Told {
    let cannot = |error: io::Error| format!("{}: {error}", server.start_lock().display());
    let lock = make_run_dir(&server.run_dir).and_then(|()| {
        let lock = File::create(server.start_lock()).map_err(cannot)?;
        lock.lock().map_err(cannot)?;
        Ok(lock)
    });
    let told = lock.and_then(|lock| {
        let told = order();
        drop(lock);
        told
    });
    told.unwrap_or_else(|message| Told::failed(message, 1))
}

fn start_held(server: &Named) -> Result<Told, String> {
    let presence = server.presence();
    if let Presence::Running(owner) = presence.map_err(|error| error.to_string())? {
        return Ok(Told::done(format!("is running already, pid {}", owner.pid)));
    }
    let child = spawn(server).map_err(|error| format!("cannot be started: {error}"))?;
    wait_for(child).map_err(|error| format!("cannot be waited for: {error}"))
}

/// The server, with its name in the place where `ps` looks.
fn spawn(server: &Named) -> io::Result<Child> {
    let folder = server.config.parent().unwrap_or(&server.config);
    Command::new(std::env::current_exe()?)
        .arg0(format!("outboard: {} gateway", server.name))
        .args(["serve", "--detach", "--name", &server.name, "--conf-dir"])
        .arg(folder)
        .arg("--run-dir")
        .arg(&server.run_dir)
        // Those are the service manager's messages to this command, not to the server.
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_USEC")
        .env_remove("LISTEN_FDS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Reads what it says until it serves or ends.
fn wait_for(mut child: Child) -> io::Result<Told> {
    let mut errors = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // Beside each other: a pipe that nobody reads would stop the writer.
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        errors.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let mut said = String::new();
    child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_to_string(&mut said)?;
    let errors = errors.join().map_err(|_| io::ErrorKind::BrokenPipe)??;
    let last: Option<Value> = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    if let Some(ready) = last {
        return Ok(Told::done(format!("RUNNING  pid {}  {}", ready["pid"], listeners(&ready))));
    }
    let status = child.wait()?;
    let errors = errors.trim();
    let errors = errors.strip_prefix("error: ").unwrap_or(errors);
    let message = if errors.is_empty() { format!("it ended: {status}") } else { errors.to_owned() };
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
    Ok(Told::failed(message, code.unwrap_or(1)))
}

fn listeners(ready: &Value) -> String {
    let all = ready["listeners"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}
