//! The start of PHP for an app: from the first order of the supervisor to the loops of the zygote and
//! of its workers.
//!
//! Called by `main`. Invariant: the user and the environment of the process are final before PHP starts.

use crate::forking::Forking;
use crate::zygote::{LoopEnd, Zygote};
use crate::{backtrace, keeper, process, startup, worker, worker_script};
use outboard_ring::control::{self, Event, HostSettings, Isolation, Order, WorkerScript};
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Runs until the supervisor closes the control socket.
///
/// With `user`, the process switches to that user and group before anything else.
pub(crate) fn run(user: Option<(u32, u32)>) -> io::Result<ExitCode> {
    let supervisor = process::parent();
    if let Some((uid, gid)) = user {
        process::become_user(uid, gid)?;
    }
    if !process::die_with(supervisor) {
        return Ok(ExitCode::FAILURE);
    }
    process::close_inherited();
    let control = take_control_socket()?;
    process::leave_terminal();
    process::reset_fault_handlers();
    process::unblock_signals();
    process::ignore_termination();
    let settings = match control::receive(&control)? {
        Some((Order::Start { settings }, _)) => settings,
        Some((Order::Run { settings, command }, _)) => {
            return keeper::run(control, &settings, &command, supervisor);
        }
        _ => return Err(io::Error::other("the first order must be `Start` or `Run`")),
    };
    let started = match startup::start(&settings, supervisor) {
        Ok(started) => started,
        Err(startup::StartError(message)) => {
            control::send(&control, &Event::StartFailed { message }, &[])?;
            return Ok(ExitCode::FAILURE);
        }
    };
    process::set_title(&format!("outboard: {} zygote", settings.app), process::ZYGOTE_NAME);
    backtrace::prepare();
    let mut zygote = Zygote::new(control, settings, started)?;
    match snapshot_script(zygote.settings()) {
        Some(script) => take_snapshot(zygote, &script),
        None => {
            zygote.report_start()?;
            Ok(match zygote.follow_orders()? {
                // Exits of other children are not asked for.
                LoopEnd::Leave | LoopEnd::Exited(_) => ExitCode::SUCCESS,
                LoopEnd::Forked(number, fds) => {
                    let settings = zygote.settings();
                    worker::run(&settings.app, number, fds, settings.worker.as_ref())
                }
            })
        }
    }
}

/// The supervisor passes the socket as standard input; scripts get an empty one.
fn take_control_socket() -> io::Result<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin).is_err() {
        return Err(io::Error::other(
            "standard input is not a control socket: this program is started by `outboard`",
        ));
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(control)
}

/// The script, if it boots in the zygote and not in each worker.
fn snapshot_script(settings: &HostSettings) -> Option<WorkerScript> {
    let script = settings.worker.clone()?;
    let is_forked = matches!(script.isolation, Isolation::Fork | Isolation::Rewind);
    (is_forked || script.starts_server).then_some(script)
}

fn take_snapshot(zygote: Zygote, script: &WorkerScript) -> io::Result<ExitCode> {
    let forking = worker_script::snapshot(script, Forking::new(zygote));
    let missing =
        if script.starts_server { "the start of a server" } else { "a call for a request" };
    forking.fail(&format!("{} ended without {missing}", script.script.display()))?;
    Ok(ExitCode::FAILURE)
}
