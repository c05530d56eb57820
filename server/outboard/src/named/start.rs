//! `outboard start`: starts servers in the background and returns when they are ready.
//!
//! Invariant: success is reported only after the server has reported that it is ready; otherwise its
//! output is the error.

use super::directories::make_run_dir;
use super::pid_file::Presence;
use super::{CommandOutcome, Named, run_selected};
use crate::instances::InstanceSelector;
use crate::terminal::Terminal;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

pub(crate) fn run(pick: &InstanceSelector, terminal: &Terminal) -> std::process::ExitCode {
    run_selected(pick, terminal, start)
}

/// Starts a server, unless it runs.
fn start(server: &Named) -> CommandOutcome {
    alone(server, || start_held(server))
}

/// Stops a server with `stop`, and starts it. Concurrent restarts are serialised: otherwise one would
/// stop what the other is starting.
pub(super) fn restart(server: &Named, stop: impl FnOnce() -> CommandOutcome) -> CommandOutcome {
    alone(server, || match stop() {
        outcome if outcome.code != 0 => Ok(outcome),
        _ => start_held(server),
    })
}

/// Holds the start lock of the server during `command`.
fn alone(
    server: &Named,
    command: impl FnOnce() -> Result<CommandOutcome, String>,
) -> CommandOutcome {
    let cannot = |error: io::Error| format!("{}: {error}", server.start_lock().display());
    let lock = make_run_dir(&server.run_dir).and_then(|()| {
        let lock = File::create(server.start_lock()).map_err(cannot)?;
        lock.lock().map_err(cannot)?;
        Ok(lock)
    });
    let outcome = lock.and_then(|lock| {
        let outcome = command();
        drop(lock);
        outcome
    });
    outcome.unwrap_or_else(|message| CommandOutcome::failed(message, 1))
}

fn start_held(server: &Named) -> Result<CommandOutcome, String> {
    let presence = server.presence();
    if let Presence::Running(owner) = presence.map_err(|error| error.to_string())? {
        return Ok(CommandOutcome::done(format!("is already running, pid {}", owner.pid)));
    }
    let child = spawn(server).map_err(|error| format!("cannot be started: {error}"))?;
    wait_for(child).map_err(|error| format!("cannot be waited for: {error}"))
}

/// Spawns the server, with its name as process title.
fn spawn(server: &Named) -> io::Result<Child> {
    let directory = server.config.parent().unwrap_or(&server.config);
    Command::new(std::env::current_exe()?)
        .arg0(format!("outboard: {} gateway", server.name))
        .args(["serve", "--detach", "--name", &server.name, "--conf-dir"])
        .arg(directory)
        .arg("--run-dir")
        .arg(&server.run_dir)
        // The service manager set these for this command, not for the server.
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_USEC")
        .env_remove("LISTEN_FDS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Reads its output until it is ready or exits.
fn wait_for(mut child: Child) -> io::Result<CommandOutcome> {
    let mut errors = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // Both pipes are read concurrently: a full pipe would block the server.
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        errors.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let mut output = String::new();
    child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_to_string(&mut output)?;
    let errors = errors.join().map_err(|_| io::ErrorKind::BrokenPipe)??;
    let last: Option<Value> =
        output.lines().last().and_then(|line| serde_json::from_str(line).ok());
    if let Some(ready) = last {
        return Ok(CommandOutcome::done(format!(
            "RUNNING  pid {}  {}",
            ready["pid"],
            listeners(&ready)
        )));
    }
    let status = child.wait()?;
    let errors = errors.trim();
    let errors = errors.strip_prefix("error: ").unwrap_or(errors);
    let message =
        if errors.is_empty() { format!("it exited: {status}") } else { errors.to_owned() };
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
    Ok(CommandOutcome::failed(message, code.unwrap_or(1)))
}

fn listeners(ready: &Value) -> String {
    let all = ready["listeners"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}
