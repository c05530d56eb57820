//! [`Keeper`]: runs a program of an app in place of PHP, and ends with everything that the program has started.
//!
//! Called by `boot` for the order to run. Two processes without PHP: the outer one adopts what the inner one leaves if that
//! is killed, and the inner one ends everything if the outer one or the gateway is gone. Invariants: the program runs as
//! the app's workers do, in a process group of its own; nothing that descends from it survives the inner process, unless
//! both are killed at the same moment; the program inherits no descriptor but the standard ones.
//!
//! ```text
//! gateway ─▶ outer ─▶ inner ─▶ program ─▶ its children
//!              │        ▲ └─────────────▶ those that have left their parents
//!              └─ pipe ─┘
//! ```

use crate::child_exits::ChildExits;
use crate::startup::{self, StartError};
use crate::{descendants, process, sandbox};
use outboard_ring::control::{self, Command, Event, HostSettings, Order};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

/// The short name of keepers, which is not that of any worker.
const NAME: &str = "outboard-keeper";

/// The number of the program in events.
const PROGRAM: u64 = 0;

/// The state of the inner process.
struct Keeper {
    control: OwnedFd,
    /// Hangs up when the outer process has ended.
    outer: OwnedFd,
    exits: ChildExits,
    program: i32,
    /// Children that are not of the program: the monitor of the sandbox.
    own: Vec<i32>,
    /// Requested by the gateway: what outlives the program gets this signal as well.
    stop_signal: Option<i32>,
    /// What has got it.
    signalled: Vec<i32>,
    /// How the program has ended.
    status: Option<i32>,
}

/// Runs until the program has ended, or the gateway.
pub(crate) fn run(
    control: OwnedFd,
    settings: &HostSettings,
    command: &Command,
    supervisor: u32,
) -> io::Result<ExitCode> {
    if let Err(StartError(message)) = startup::drop_rights(settings, supervisor) {
        return fail(&control, message);
    }
    process::add_user_variables();
    process::set_title(&format!("outboard: {} keeper", settings.app), NAME);
    descendants::adopt();
    let (of_inner, of_outer) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the process has one thread, so the child's copy is complete.
    match unsafe { libc::fork() } {
        -1 => fail(&control, format!("cannot fork: {}", io::Error::last_os_error())),
        0 => {
            drop(of_outer);
            process::wake_at_end_of_parent();
            keep((control, of_inner), settings, command)
        }
        inner => {
            drop((control, of_inner));
            wait_for(inner);
            descendants::end_all();
            // Open until here.
            drop(of_outer);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn fail(control: &OwnedFd, message: String) -> io::Result<ExitCode> {
    control::send(control, &Event::ForkFailed { worker: PROGRAM, message }, &[])?;
    Ok(ExitCode::FAILURE)
}

fn wait_for(child: i32) {
    // SAFETY: without a place for the status.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// The inner process.
fn keep(
    (control, outer): (OwnedFd, OwnedFd),
    settings: &HostSettings,
    command: &Command,
) -> io::Result<ExitCode> {
    descendants::adopt();
    let exits = ChildExits::watch()?;
    let started = confine(settings).and_then(|()| {
        let own = descendants::children();
        Ok((own, start_program(command)?))
    });
    let (own, program) = match started {
        Ok(started) => started,
        Err(StartError(message)) => {
            descendants::end_all();
            return fail(&control, message);
        }
    };
    // Here and below, the gateway may have ended, and nothing is left behind then.
    let _ = control::send(&control, &Event::Forked { worker: PROGRAM, pid: program }, &[]);
    let (stop_signal, signalled, status) = (None, Vec::new(), None);
    let mut keeper = Keeper { control, outer, exits, program, own, stop_signal, signalled, status };
    let _ = keeper.follow();
    descendants::end_group(program);
    descendants::end_all();
    if let Some(status) = keeper.status {
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        let ended = Event::Exited { worker: PROGRAM, code, signal };
        let _ = control::send(&keeper.control, &ended, &[]);
    }
    Ok(ExitCode::SUCCESS)
}

impl Keeper {
    /// Until the program has ended, with what it has left if it was requested to end, or another side has.
    fn follow(&mut self) -> io::Result<()> {
        loop {
            let mut ready = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(&self.exits, PollFlags::IN),
                PollFd::new(&self.outer, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let [orders, exits, outer] = ready.map(|fd| !fd.revents().is_empty());
            if outer || (orders && self.take_order()?.is_break()) {
                return Ok(());
            }
            if exits && self.reap().is_break() {
                return Ok(());
            }
        }
    }

    fn take_order(&mut self) -> io::Result<ControlFlow<()>> {
        match control::receive(&self.control)? {
            None => Ok(ControlFlow::Break(())),
            Some((Order::Signal { signal, .. }, _)) => {
                self.stop_signal = Some(signal);
                // A program that has ended is not reaped before its status is known, so its pid is its own.
                if self.status.is_none() {
                    signal_to(self.program, signal);
                }
                Ok(ControlFlow::Continue(()))
            }
            Some(_) => Err(io::Error::other("a keeper takes orders to signal its program only")),
        }
    }

    /// Reaps the program and what it has left.
    fn reap(&mut self) -> ControlFlow<()> {
        self.exits.clear();
        let mut status = 0;
        loop {
            // SAFETY: `status` outlives the call.
            match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
                pid if pid == self.program => self.status = Some(status),
                ..=0 => break,
                _ => {}
            }
        }
        if self.status.is_none() {
            return ControlFlow::Continue(());
        }
        let mut left = descendants::children();
        left.retain(|child| !self.own.contains(child));
        let Some(signal) = self.stop_signal.filter(|_| !left.is_empty()) else {
            return ControlFlow::Break(());
        };
        // Those that have lost their parents meanwhile are new.
        left.iter()
            .filter(|child| !self.signalled.contains(child))
            .for_each(|child| signal_to(*child, signal));
        self.signalled = left;
        ControlFlow::Continue(())
    }
}

/// The pid is that of a child, which is not reaped meanwhile.
fn signal_to(child: i32, signal: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(child, signal) };
}

fn confine(settings: &HostSettings) -> Result<(), StartError> {
    let Some(sandbox) = &settings.sandbox else { return Ok(()) };
    sandbox::enter_program(sandbox, &settings.app)
        .map_err(|error| StartError::new("the sandbox", error))
}

/// Returns the pid.
fn start_program(command: &Command) -> Result<i32, StartError> {
    let directory = &command.directory;
    std::env::set_current_dir(directory).map_err(|error| {
        StartError::new(&format!("cannot enter the directory {}", directory.display()), error)
    })?;
    let [program, arguments @ ..] = &command.arguments[..] else {
        return Err(StartError("the command is empty".into()));
    };
    let keeper = std::process::id();
    let mut command = std::process::Command::new(program);
    command.args(arguments).stdin(std::process::Stdio::null()).process_group(0);
    // SAFETY: plain system calls in a child with one thread.
    unsafe {
        command.pre_exec(move || match process::die_with(keeper) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        });
    }
    let started = command.spawn();
    // Reaped by its pid.
    let started = started.map(|child| child.id().cast_signed());
    started.map_err(|error| StartError::new(&format!("cannot start {program}"), error))
}
