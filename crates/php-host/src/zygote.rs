//! [`Zygote`]: receives orders from the supervisor, forks workers and reaps them.
//!
//! Created by `boot` when the engine has started. Invariants: it has one thread, so that a fork is
//! complete; a worker inherits no descriptors of other workers; the exit of each worker is reported
//! exactly once. When the control socket closes, the zygote exits with all its descendants; the
//! supervisor closes it after the last worker.

use crate::capture::Capture;
use crate::link::Link;
use crate::worker_fds::WorkerFds;
use crate::{backtrace, descendants, engine, exit, process};
use outboard_ring::control::{self, BACKTRACE_SIGNAL, Event, HostSettings, Order};
use outboard_ring::frame::Tag;
use rustix::event::{PollFd, PollFlags, poll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind::BrokenPipe, ErrorKind::ConnectionReset};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Zygote {
    control: OwnedFd,
    exits: ChildExits,
    settings: Box<HostSettings>,
    workers: BTreeMap<u64, Child>,
    /// Other children that have exited, for [`LoopEnd::Exited`]; `None` if the script has none.
    others: Option<Vec<i32>>,
}

/// A worker, as seen by the zygote.
#[derive(Debug)]
struct Child {
    pid: i32,
    /// Its ring, for backtraces.
    memory: OwnedFd,
    /// The request of the last backtrace.
    last_backtrace: Option<Tag>,
}

/// Why the zygote's loop ended.
#[derive(Debug)]
pub(crate) enum LoopEnd {
    /// The supervisor closed the socket.
    Leave,
    /// A child that is no worker has exited; the loop may go on.
    Exited(i32),
    /// This process is now a worker, with this number and these descriptors.
    Forked(u64, WorkerFds),
}

/// A zygote whose script is about to call for a request.
#[derive(Debug)]
pub(crate) struct Forking {
    zygote: Zygote,
    /// Until it is reported.
    started: Option<Event>,
    boot: Option<Capture>,
}

/// What [`Forking::fork_workers`] returned for.
#[derive(Debug)]
pub(crate) enum Forked {
    /// This process is a worker with this ring.
    Worker(Rc<RefCell<Link>>),
    /// A child that is no worker has exited; more workers can be forked.
    Exited(i32, Forking),
    /// This is the zygote, and it is to exit.
    Leave,
}

impl Forking {
    /// Its output is captured from now on.
    pub(crate) fn new(zygote: Zygote, started: Event) -> io::Result<Self> {
        Ok(Self { boot: Some(Capture::begin()?), zygote, started: Some(started) })
    }

    /// Has exits of the script's own children reported from now on.
    pub(crate) fn watch_others(&mut self) {
        self.zygote.others.get_or_insert_default();
    }

    /// Reports that the app has started, and forks workers. Returns in each of them.
    pub(crate) fn fork_workers(mut self) -> Forked {
        let sent = self.report_start();
        match sent.and_then(|()| self.zygote.follow_orders()) {
            Ok(LoopEnd::Forked(number, fds)) => {
                let link = fds.connect(&self.zygote.settings.app, number);
                // The descriptors are closed already.
                std::mem::forget(self);
                Forked::Worker(link)
            }
            Ok(LoopEnd::Exited(pid)) => Forked::Exited(pid, self),
            Ok(LoopEnd::Leave) => Forked::Leave,
            Err(error) => {
                eprintln!("outboard-php: the zygote exits: {error}");
                exit::leave(1)
            }
        }
    }

    fn report_start(&mut self) -> io::Result<()> {
        let printed = self.printed();
        let Some(mut started) = self.started.take() else { return Ok(()) };
        if let Event::Started { messages, .. } = &mut started {
            messages.push_str(&printed);
        }
        self.zygote.report(&started)
    }

    /// In a child that the script has forked: drops everything of the zygote. What the child prints goes
    /// to the log, as its parent will not read the captured output again.
    pub(crate) fn leave_to_child(mut self) -> io::Result<()> {
        self.zygote.exits.unblock();
        self.boot.take().map_or(Ok(()), |boot| boot.restore())
    }

    /// Reports why the script forked no workers, and its output.
    pub(crate) fn fail(mut self, why: &str) -> io::Result<()> {
        let message = format!("{why}\n{}", self.printed()).trim().to_owned();
        self.zygote.report(&Event::StartFailed { message })
    }

    fn printed(&mut self) -> String {
        self.boot.take().map_or_else(String::new, |boot| boot.end().unwrap_or_default())
    }
}

impl Zygote {
    /// A zygote without workers, after the start of the engine.
    pub(crate) fn new(control: OwnedFd, settings: Box<HostSettings>) -> io::Result<Self> {
        let exits = ChildExits::watch()?;
        Ok(Self { control, exits, settings, workers: BTreeMap::new(), others: None })
    }

    pub(crate) fn settings(&self) -> &HostSettings {
        &self.settings
    }

    /// Reports an event to the supervisor.
    pub(crate) fn report(&self, event: &Event) -> io::Result<()> {
        control::send(&self.control, event, &[])
    }

    /// Returns at the end of the zygote, and in each forked worker.
    pub(crate) fn follow_orders(&mut self) -> io::Result<LoopEnd> {
        descendants::adopt();
        let end = match self.take_orders() {
            // The supervisor has exited without reading all events.
            Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                Ok(LoopEnd::Leave)
            }
            end => end,
        };
        if !matches!(end, Ok(LoopEnd::Forked(..) | LoopEnd::Exited(_))) {
            descendants::end_all();
        }
        end
    }

    fn take_orders(&mut self) -> io::Result<LoopEnd> {
        loop {
            if let Some(pid) = self.others.as_mut().and_then(Vec::pop) {
                return Ok(LoopEnd::Exited(pid));
            }
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
            if orders && let Some(end) = self.take_order()? {
                return Ok(end);
            }
        }
    }

    fn take_order(&mut self) -> io::Result<Option<LoopEnd>> {
        let Some((order, descriptors)) = control::receive(&self.control)? else {
            return Ok(Some(LoopEnd::Leave));
        };
        match order {
            Order::Start { .. } => return Err(io::Error::other("the engine has started already")),
            Order::Fork { worker } => return self.fork(worker, descriptors),
            Order::Signal { worker, signal } => self.signal(worker, signal),
        }
        Ok(None)
    }

    fn fork(&mut self, number: u64, descriptors: Vec<OwnedFd>) -> io::Result<Option<LoopEnd>> {
        let Ok(descriptors) = <[OwnedFd; 4]>::try_from(descriptors) else {
            let message = "the order to fork came without its four descriptors".to_owned();
            let event = Event::ForkFailed { worker: number, message };
            self.report(&event)?;
            return Ok(None);
        };
        let zygote = std::process::id();
        engine::watch_children(false);
        // SAFETY: the process has one thread, so the child's copy is complete.
        let pid = unsafe { libc::fork() };
        engine::watch_children(true);
        let event = match pid {
            -1 => {
                let message = io::Error::last_os_error().to_string();
                Event::ForkFailed { worker: number, message }
            }
            0 => {
                let fds = self.become_worker(zygote, descriptors);
                return Ok(Some(LoopEnd::Forked(number, fds)));
            }
            pid => {
                let [memory, ..] = descriptors;
                self.workers.insert(number, Child { pid, memory, last_backtrace: None });
                Event::Forked { worker: number, pid }
            }
        };
        self.report(&event)?;
        Ok(None)
    }

    /// In the child: drops everything of the zygote except the engine.
    fn become_worker(&mut self, zygote: u32, descriptors: [OwnedFd; 4]) -> WorkerFds {
        if !process::die_with(zygote) {
            exit::leave(1);
        }
        descendants::lead_group();
        self.exits.unblock();
        self.workers.clear();
        for fd in [self.control.as_raw_fd(), self.exits.0.as_raw_fd()] {
            // SAFETY: the child uses neither again, and never drops `self`.
            unsafe { libc::close(fd) };
        }
        let [memory, bell, gateway_bell, output] = descriptors;
        WorkerFds { memory, bell, gateway_bell, output }
    }

    /// A pid is not reused before the zygote has reaped the worker.
    fn signal(&mut self, number: u64, signal: i32) {
        let Some(child) = self.workers.get_mut(&number) else { return };
        if signal == BACKTRACE_SIGNAL {
            backtrace::request(child.pid, &child.memory, &mut child.last_backtrace);
        } else {
            // SAFETY: a plain system call for a child of this process.
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
            let Some(number) = self.number_of(pid) else {
                self.others.iter_mut().for_each(|others| others.push(pid));
                continue;
            };
            self.workers.remove(&number);
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
            if code != Some(0) {
                descendants::end_group(pid);
            }
            let event = Event::Exited { worker: number, code, signal };
            self.report(&event)?;
        }
    }

    fn number_of(&self, pid: i32) -> Option<u64> {
        self.workers.iter().find(|(_, child)| child.pid == pid).map(|(number, _)| *number)
    }
}

/// A signalfd for SIGCHLD.
#[derive(Debug)]
struct ChildExits(OwnedFd);

fn child_signals() -> libc::sigset_t {
    // SAFETY: sigemptyset(3) initialises the zeroed memory.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        signals
    }
}

impl ChildExits {
    /// After PHP's start-up, which may have run children of its own, and before the first worker.
    fn watch() -> io::Result<Self> {
        let signals = child_signals();
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: a valid signal set; the returned descriptor has no other owner.
        unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
            let fd = libc::signalfd(-1, &raw const signals, flags);
            if fd == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// In a worker, because scripts reap their own children.
    fn unblock(&self) {
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
