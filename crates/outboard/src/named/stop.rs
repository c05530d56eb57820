//! `outboard stop`, `restart`, `reload` and `shutdown`: orders to named servers that run.
//!
//! Invariant: a stop is told when the process has ended, and a signal reaches no other process
//! than the one that holds the pid file.

use super::pid_file::{Owner, PidFile, Presence};
use super::places::{names_in, run_dirs};
use super::{Named, Told, order_each, start, tell_each};
use crate::admin_client::{CallError, call};
use crate::cli::{Pick, ShutdownArguments};
use crate::terminal::{Terminal, say};
use outboard_admin_api::server::Reload;
use outboard_admin_api::status::Get;
use outboard_config::Config;
use rustix::process::Signal;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// `outboard stop NAME…`
pub(crate) fn run(pick: &Pick, terminal: &Terminal) -> ExitCode {
    order_each(pick, terminal, stop)
}

/// `outboard restart NAME…`
pub(crate) fn restart(pick: &Pick, terminal: &Terminal) -> ExitCode {
    order_each(pick, terminal, |server| {
        // What would not start again is not stopped.
        if let Err(diagnostics) = Config::load(&server.config) {
            let text = format!("left as it is:\n{}", diagnostics.render(terminal.color_err));
            return Told::failed(text, 2);
        }
        start::restart(server, || stop(server))
    })
}

/// `outboard reload NAME…`
pub(crate) fn reload(pick: &Pick, terminal: &Terminal) -> ExitCode {
    let all = pick.names.is_empty();
    order_each(pick, terminal, |server| match server.presence() {
        Err(error) => Told::failed(error.to_string(), 1),
        Ok(Presence::Dead | Presence::Stopped) if all => Told::done("is not running"),
        Ok(Presence::Dead | Presence::Stopped) => Told::failed("it is not running", 7),
        Ok(Presence::Running(_)) => match call(&server.admin_socket(), &Reload {}) {
            Ok(reloaded) => Told::done(format!("generation {} serves", reloaded.generation)),
            Err(CallError::Unreachable(message)) => Told::failed(message, 1),
            Err(CallError::Refused(why)) => {
                Told::failed(format!("everything stays as it was: {why}"), 1)
            }
        },
    })
}

/// `outboard shutdown`
pub(crate) fn shutdown(arguments: &ShutdownArguments, terminal: &Terminal) -> ExitCode {
    let run_dirs = match &arguments.run_dir {
        Some(folder) => vec![folder.clone()],
        None => run_dirs(),
    };
    let servers: Vec<Named> = run_dirs.iter().flat_map(|folder| traces_in(folder)).collect();
    if servers.is_empty() {
        say!("no named server is running");
    }
    tell_each(&servers, terminal, stop)
}

/// The servers with a pid file in a run folder, wherever their configuration is.
fn traces_in(run_dir: &Path) -> Vec<Named> {
    let names = names_in(run_dir, ".pid").unwrap_or_default().into_iter();
    let unknown = std::path::PathBuf::new;
    let named = |name| Named { name, config: unknown(), run_dir: run_dir.into(), log: unknown() };
    names.map(named).collect()
}

/// Has one finish what it has begun, and waits until it has gone.
fn stop(server: &Named) -> Told {
    match server.presence() {
        Err(error) => Told::failed(error.to_string(), 1),
        Ok(Presence::Stopped) => Told::done("is not running"),
        Ok(Presence::Dead) => {
            // Only its holder may remove it; nobody is, or just now somebody has become it.
            let held = PidFile::take(&server.pid_file());
            drop(held);
            Told::done("was dead; its pid file is removed")
        }
        Ok(Presence::Running(owner)) => match end(server, &owner) {
            Ok(told) => told,
            Err(error) => Told::failed(format!("pid {} cannot be ended: {error}", owner.pid), 1),
        },
    }
}

fn end(server: &Named, owner: &Owner) -> io::Result<Told> {
    let patience_ms = drain_timeout_ms(server) + GRACE_MS;
    owner.signal(Signal::TERM)?;
    if owner.has_ended_within(patience_ms)? {
        return Ok(Told::done("STOPPED"));
    }
    owner.signal(Signal::KILL)?;
    let seconds = patience_ms / 1000;
    if owner.has_ended_within(GRACE_MS)? {
        drop(PidFile::take(&server.pid_file()));
        return Ok(Told::done(format!("STOPPED, killed: it did not end within {seconds} s")));
    }
    Ok(Told::failed(format!("pid {} does not end, even when killed", owner.pid), 1))
}

/// Beyond its drain time-out.
const GRACE_MS: u64 = 5_000;

/// How long it says that it may take.
fn drain_timeout_ms(server: &Named) -> u64 {
    let status = call(&server.admin_socket(), &Get {});
    status.map_or(DRAIN_TIMEOUT_MS, |status| status.drain_timeout_ms)
}

/// The configuration's default.
const DRAIN_TIMEOUT_MS: u64 = 30_000;
