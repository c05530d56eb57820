//! `outboard stop`, `restart`, `reload`, `upgrade` and `shutdown`: commands for running named servers.
//!
//! Invariant: a stop is reported only after the process has ended, and signals are sent only to the
//! process that holds the lock of the pid file.

use super::directories::{names_in, run_dirs};
use super::pid_file::{Owner, PidFile, Presence};
use super::{CommandOutcome, Named, run_each, run_selected, start};
use crate::admin_client::{CallError, call};
use crate::instances::InstanceSelector;
use crate::terminal::{Terminal, say};
use clap::Args;
use outboard_admin_api::Endpoint;
use outboard_admin_api::server::{Reload, Upgrade};
use outboard_admin_api::status::Get;
use outboard_config::Config;
use rustix::process::Signal;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ShutdownArguments {
    /// Only servers with pid files in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

/// `outboard stop NAME…`
pub(crate) fn run(pick: &InstanceSelector, terminal: &Terminal) -> ExitCode {
    run_selected(pick, terminal, stop)
}

/// `outboard restart NAME…`
pub(crate) fn restart(pick: &InstanceSelector, terminal: &Terminal) -> ExitCode {
    run_selected(pick, terminal, |server| {
        // A server that would not start again is not stopped.
        if let Err(diagnostics) = Config::load(&server.config) {
            let text = format!("not restarted:\n{}", diagnostics.render(terminal.color_err));
            return CommandOutcome::failed(text, 2);
        }
        start::restart(server, || stop(server))
    })
}

/// `outboard reload NAME…`
pub(crate) fn reload(pick: &InstanceSelector, terminal: &Terminal) -> ExitCode {
    change(pick, terminal, &Reload {}, |reloaded| {
        format!("generation {} is active", reloaded.generation)
    })
}

/// `outboard upgrade NAME…`
pub(crate) fn upgrade(pick: &InstanceSelector, terminal: &Terminal) -> ExitCode {
    change(pick, terminal, &Upgrade {}, |upgraded| format!("process {} serves now", upgraded.pid))
}

fn change<E: Endpoint + Sync>(
    pick: &InstanceSelector,
    terminal: &Terminal,
    request: &E,
    done: impl Fn(&E::Reply) -> String + Sync,
) -> ExitCode {
    let all = pick.names.is_empty();
    run_selected(pick, terminal, |server| match server.presence() {
        Err(error) => CommandOutcome::failed(error.to_string(), 1),
        Ok(Presence::Dead | Presence::Stopped) if all => CommandOutcome::done("is not running"),
        Ok(Presence::Dead | Presence::Stopped) => CommandOutcome::failed("it is not running", 7),
        Ok(Presence::Running(_)) => match call(&server.admin_socket(), request) {
            Ok(reply) => CommandOutcome::done(done(&reply)),
            Err(CallError::Unreachable(message)) => CommandOutcome::failed(message, 1),
            Err(CallError::Refused(why)) => {
                CommandOutcome::failed(format!("nothing has changed: {why}"), 1)
            }
        },
    })
}

/// `outboard shutdown`
pub(crate) fn shutdown(arguments: &ShutdownArguments, terminal: &Terminal) -> ExitCode {
    let run_dirs = match &arguments.run_dir {
        Some(directory) => vec![directory.clone()],
        None => run_dirs(),
    };
    let servers: Vec<Named> = run_dirs.iter().flat_map(|directory| servers_in(directory)).collect();
    if servers.is_empty() {
        say!("no named server is running");
    }
    run_each(&servers, terminal, stop)
}

/// The servers with a pid file in a run directory, wherever their configuration is.
fn servers_in(run_dir: &Path) -> Vec<Named> {
    let names = names_in(run_dir, ".pid").unwrap_or_default().into_iter();
    let unknown = std::path::PathBuf::new;
    let named = |name| Named { name, config: unknown(), run_dir: run_dir.into(), log: unknown() };
    names.map(named).collect()
}

/// Stops a server, and waits until its process has ended.
fn stop(server: &Named) -> CommandOutcome {
    match server.presence() {
        Err(error) => CommandOutcome::failed(error.to_string(), 1),
        Ok(Presence::Stopped) => CommandOutcome::done("is not running"),
        Ok(Presence::Dead) => {
            // Only the holder of the lock may remove the file.
            let held = PidFile::take(&server.pid_file());
            drop(held);
            CommandOutcome::done("was dead; its pid file was removed")
        }
        Ok(Presence::Running(owner)) => match end(server, &owner) {
            Ok(outcome) => outcome,
            Err(error) => {
                CommandOutcome::failed(format!("pid {} cannot be stopped: {error}", owner.pid), 1)
            }
        },
    }
}

fn end(server: &Named, owner: &Owner) -> io::Result<CommandOutcome> {
    let patience_ms = drain_timeout_ms(server) + GRACE_MS;
    owner.signal(Signal::TERM)?;
    if owner.has_ended_within(patience_ms)? {
        return Ok(CommandOutcome::done("STOPPED"));
    }
    owner.signal(Signal::KILL)?;
    let seconds = patience_ms / 1000;
    if owner.has_ended_within(GRACE_MS)? {
        drop(PidFile::take(&server.pid_file()));
        return Ok(CommandOutcome::done(format!("STOPPED, killed after {seconds} s")));
    }
    Ok(CommandOutcome::failed(format!("pid {} does not end, even after SIGKILL", owner.pid), 1))
}

/// Extra time after its drain time-out.
const GRACE_MS: u64 = 5_000;

/// Its drain time-out.
fn drain_timeout_ms(server: &Named) -> u64 {
    let status = call(&server.admin_socket(), &Get {});
    status.map_or(DRAIN_TIMEOUT_MS, |status| status.drain_timeout_ms)
}

/// The configuration's default.
const DRAIN_TIMEOUT_MS: u64 = 30_000;
