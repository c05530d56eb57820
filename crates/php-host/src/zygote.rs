//! The zygote: takes orders from the supervisor, starts the engine, forks workers, reaps them.
//!
//! Called by `main`. Invariants: one thread, so that a fork copies all there is; a worker inherits
//! no other worker's descriptors; every worker that was forked is reported as gone exactly once.
//! When the control socket closes the zygote leaves, and its workers die with it: the supervisor
//! closes it when it has heard of the end of the last one.

use crate::worker::{self, WorkerFds};
use crate::{backtrace, process, startup};
use outboard_ring::control::{self, BACKTRACE_SIGNAL, Event, HostSettings, Order};
use outboard_ring::frame::Tag;
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

/// Runs until the supervisor closes the control socket.
pub(crate) fn run() -> io::Result<ExitCode> {
    let supervisor = process::parent();
    if !process::die_with(supervisor) {
        return Ok(ExitCode::FAILURE);
    }
    process::close_inherited();
    let control = take_control_socket()?;
    process::leave_terminal();
    process::die_of_faults();
    process::unblock_signals();
    process::disregard_termination();
    let Some((Order::Start { settings }, _)) = control::receive(&control)? else {
        return Err(io::Error::other("the first order must be to start"));
    };
    match startup::start(&settings, supervisor, &control) {
        Ok(started) => {
            control::send(&control, &started, &[])?;
            process::set_title(&format!("outboard: {} zygote", settings.app), "outboard-zygote");
            Zygote { control, exits: ChildExits::watch()?, settings, workers: BTreeMap::new() }
                .obey()
        }
        Err(startup::StartError(message)) => {
            control::send(&control, &Event::StartFailed { message }, &[])?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The supervisor hands the socket over as standard input; scripts get an empty one.
fn take_control_socket() -> io::Result<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin).is_err() {
        return Err(io::Error::other(
            "standard input is no control socket: this program is started by `outboard`",
        ));
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(control)
}

struct Zygote {
    control: OwnedFd,
    exits: ChildExits,
    settings: Box<HostSettings>,
    workers: BTreeMap<u64, Child>,
}

/// A worker as the zygote knows it.
struct Child {
    pid: i32,
    /// Its ring, which backtraces are written to.
    memory: OwnedFd,
    /// The request that it was last asked a backtrace of.
    asked: Option<Tag>,
}

impl Zygote {
    fn obey(mut self) -> io::Result<ExitCode> {
        loop {
            let mut ready = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(&self.exits.0, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let [orders, exits] = ready.map(|fd| !fd.revents().is_empty());
            if exits {
                self.reap()?;
            }
            if orders && !self.take_order()? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// False when the supervisor has closed the socket.
    fn take_order(&mut self) -> io::Result<bool> {
        let Some((order, descriptors)) = control::receive(&self.control)? else {
            return Ok(false);
        };
        match order {
            Order::Start { .. } => return Err(io::Error::other("the engine runs already")),
            Order::Fork { worker } => self.fork(worker, descriptors)?,
            Order::Signal { worker, signal } => self.signal(worker, signal),
        }
        Ok(true)
    }

    fn fork(&mut self, number: u64, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let Ok(descriptors) = <[OwnedFd; 4]>::try_from(descriptors) else {
            let message = "the order to fork came without its four descriptors".to_owned();
            return control::send(
                &self.control,
                &Event::ForkFailed { worker: number, message },
                &[],
            );
        };
        let zygote = std::process::id();
        // SAFETY: the process has one thread, so the child may go on as if nothing had happened.
        let pid = unsafe { libc::fork() };
        let event = match pid {
            -1 => {
                let message = io::Error::last_os_error().to_string();
                Event::ForkFailed { worker: number, message }
            }
            0 => self.become_worker(number, zygote, descriptors),
            pid => {
                let [memory, ..] = descriptors;
                self.workers.insert(number, Child { pid, memory, asked: None });
                Event::Forked { worker: number, pid }
            }
        };
        control::send(&self.control, &event, &[])
    }

    /// In the child: never returns to the zygote's loop.
    fn become_worker(&mut self, number: u64, zygote: u32, descriptors: [OwnedFd; 4]) -> ! {
        if !process::die_with(zygote) {
            worker::leave(1);
        }
        self.exits.forget();
        self.workers.clear();
        for fd in [self.control.as_raw_fd(), self.exits.0.as_raw_fd()] {
            // SAFETY: the child uses neither again, and never drops `self`.
            unsafe { libc::close(fd) };
        }
        let [memory, bell, gateway_bell, output] = descriptors;
        worker::run(&self.settings.app, number, WorkerFds { memory, bell, gateway_bell, output })
    }

    /// A worker that is gone but not yet reaped keeps its process id, so this cannot hit another.
    fn signal(&mut self, number: u64, signal: i32) {
        let Some(child) = self.workers.get_mut(&number) else { return };
        if signal == BACKTRACE_SIGNAL {
            backtrace::ask(child.pid, &child.memory, &mut child.asked);
        } else {
            // SAFETY: a plain system call about our own child.
            unsafe { libc::kill(child.pid, signal) };
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        self.exits.clear();
        let mut status = 0;
        loop {
            // SAFETY: `status` outlives the call.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return Ok(());
            }
            let Some(number) = self.number_of(pid) else { continue };
            self.workers.remove(&number);
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
            let event = Event::Exited { worker: number, code, signal };
            control::send(&self.control, &event, &[])?;
        }
    }

    fn number_of(&self, pid: i32) -> Option<u64> {
        self.workers.iter().find(|(_, child)| child.pid == pid).map(|(number, _)| *number)
    }
}

/// A signalfd for SIGCHLD.
struct ChildExits(OwnedFd);

fn child_signals() -> libc::sigset_t {
    // SAFETY: sigemptyset(3) initialises what the zeroed memory is.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        signals
    }
}

impl ChildExits {
    /// PHP's start-up has run its own children by now, if any; workers come later.
    fn watch() -> io::Result<Self> {
        let signals = child_signals();
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: a valid signal set; the returned descriptor is ours alone.
        unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
            let fd = libc::signalfd(-1, &raw const signals, flags);
            if fd == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// In a worker: scripts reap their own children.
    fn forget(&self) {
        let signals = child_signals();
        // SAFETY: a valid signal set.
        unsafe {
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut());
        }
    }

    fn clear(&self) {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>() * 8];
        while rustix::io::read(&self.0, &mut info).is_ok_and(|len| len == info.len()) {}
    }
}
