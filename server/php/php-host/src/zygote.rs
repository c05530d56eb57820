//! [`Zygote`]: receives orders from the supervisor, forks workers and reaps them.
//!
//! Created by `boot` when the engine has started; a sibling is a fork of it. Invariants: it has one
//! thread, so that a fork is complete; a worker inherits no descriptors of other workers; the exit of
//! each worker is reported exactly once. When the control socket closes, the zygote exits with all its
//! descendants; the supervisor closes it after the last worker.

mod siblings;

use crate::affinity::Affinity;
use crate::boot_files::BootRead;
use crate::child_exits::ChildExits;
use crate::worker_fds::WorkerFds;
use crate::worker_memories::WorkerMemories;
use crate::{backtrace, descendants, engine, exit, process, sandbox};
use outboard_ring::control::{
    self, BACKTRACE_SIGNAL, Event, HostSettings, Isolation, Order, RequestRead, Rewind,
    WorkerScript,
};
use outboard_ring::frame::Tag;
use rustix::event::{PollFd, PollFlags, poll};
use siblings::Siblings;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind::BrokenPipe, ErrorKind::ConnectionReset};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// See the module.
#[derive(Debug)]
pub(crate) struct Zygote {
    control: OwnedFd,
    exits: ChildExits,
    settings: Box<HostSettings>,
    affinity: Affinity,
    /// The facts about the start.
    started: Event,
    workers: BTreeMap<u64, Child>,
    memories: WorkerMemories,
    siblings: Siblings,
    /// Whether another zygote has forked this one.
    is_sibling: bool,
    /// Other children that have exited, for [`LoopEnd::Exited`]; `None` if the script has none.
    others: Option<Vec<i32>>,
    /// The children of the boot and of the host, once the zygote has begun to fork workers. What is neither of
    /// them was left by a worker that has ended.
    of_boot: Option<Vec<i32>>,
}

/// A worker, as seen by the zygote.
#[derive(Debug)]
struct Child {
    pid: i32,
    /// For backtraces.
    ring: OwnedFd,
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

/// The descriptors that every order to fork has.
const FORK_DESCRIPTORS: usize = 4;

impl Zygote {
    /// A zygote without workers, after the start of the engine, which is reported later.
    pub(crate) fn new(
        control: OwnedFd,
        settings: Box<HostSettings>,
        started: Event,
    ) -> io::Result<Self> {
        Ok(Self {
            control,
            exits: ChildExits::watch()?,
            settings,
            affinity: Affinity::of_zygote(),
            started,
            workers: BTreeMap::new(),
            memories: WorkerMemories::new()?,
            siblings: Siblings::default(),
            is_sibling: false,
            others: None,
            of_boot: None,
        })
    }

    pub(crate) fn settings(&self) -> &HostSettings {
        &self.settings
    }

    /// Has exits of other children reported from now on.
    pub(crate) fn watch_others(&mut self) {
        self.others.get_or_insert_default();
    }

    /// In a child of the script, which reaps its own children.
    pub(crate) fn unblock_exits(&self) {
        self.exits.unblock();
    }

    /// Reports that workers can be forked.
    pub(crate) fn report_start(&mut self) -> io::Result<()> {
        if let Event::Started { pid, .. } = &mut self.started {
            *pid = std::process::id().cast_signed();
        }
        self.report(&self.started)
    }

    /// Has the start's report say how workers are rewound, or why they are not.
    pub(crate) fn set_rewind(&mut self, how: Result<Rewind, String>) {
        if let Event::Started { rewind, rewind_refused, .. } = &mut self.started {
            match how {
                Ok(how) => *rewind = Some(how),
                Err(why) => *rewind_refused = Some(why),
            }
        }
    }

    /// Has the start's report name something that the boot has read of a request.
    pub(crate) fn add_request_read(&mut self, read: RequestRead) {
        if let Event::Started { request_reads, .. } = &mut self.started {
            request_reads.push(read);
        }
    }

    /// Reports what the start of the script has read.
    pub(crate) fn report_files(&self, read: &BootRead) -> io::Result<()> {
        let (keys, is_complete, max_age_s) = (read.keys.clone(), read.is_complete, read.max_age_s);
        let event = Event::BootRead { keys, is_complete, max_age_s };
        let list = read.files.as_ref().map(|list| list.as_fd());
        control::send(&self.control, &event, list.as_slice())
    }

    /// Reports that there will be no workers.
    pub(crate) fn report_failure(&self, message: &str) -> io::Result<()> {
        self.report(&Event::StartFailed { message: message.to_owned() })
    }

    fn report(&self, event: &Event) -> io::Result<()> {
        control::send(&self.control, event, &[])
    }

    /// Returns at the end of the zygote, and in each forked worker.
    pub(crate) fn follow_orders(&mut self) -> io::Result<LoopEnd> {
        descendants::adopt();
        self.of_boot.get_or_insert_with(descendants::children);
        process::wake_at_end_of_parent();
        let end = match self.take_orders() {
            // The supervisor has exited without reading all events.
            Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                Ok(LoopEnd::Leave)
            }
            end => end,
        };
        if !matches!(end, Ok(LoopEnd::Forked(..) | LoopEnd::Exited(_))) {
            descendants::end_all();
            if self.is_sibling {
                siblings::leave(end.map(drop));
            }
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
                PollFd::new(&self.exits, PollFlags::IN),
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
            Order::Start { .. } | Order::Run { .. } => {
                return Err(io::Error::other("the engine has started already"));
            }
            Order::Fork { worker } => return self.fork(worker, descriptors),
            Order::Signal { worker, signal } => self.signal(worker, signal),
            Order::Place { worker, cores } => self.place(worker, &cores),
            Order::Split { sibling } => self.split(sibling, descriptors)?,
            Order::KillSibling { sibling } => self.siblings.kill(sibling),
        }
        Ok(None)
    }

    fn fork(&mut self, number: u64, descriptors: Vec<OwnedFd>) -> io::Result<Option<LoopEnd>> {
        let mut descriptors = descriptors;
        let direct = descriptors.drain(FORK_DESCRIPTORS.min(descriptors.len())..).next();
        let Ok(descriptors) = <[OwnedFd; FORK_DESCRIPTORS]>::try_from(descriptors) else {
            let message = "the order to fork came without its four descriptors".to_owned();
            let event = Event::ForkFailed { worker: number, message };
            self.report(&event)?;
            return Ok(None);
        };
        let zygote = std::process::id();
        let event = match fork_process() {
            Err(error) => Event::ForkFailed { worker: number, message: error.to_string() },
            Ok(None) => {
                let fds = self.become_worker(zygote, number, descriptors, direct);
                return Ok(Some(LoopEnd::Forked(number, fds)));
            }
            Ok(Some(pid)) => {
                let [ring, ..] = descriptors;
                self.workers.insert(number, Child { pid, ring, last_backtrace: None });
                self.memories.receive();
                Event::Forked { worker: number, pid }
            }
        };
        self.report(&event)?;
        Ok(None)
    }

    /// In the child: drops everything of the zygote except the engine.
    fn become_worker(
        &mut self,
        zygote: u32,
        number: u64,
        descriptors: [OwnedFd; FORK_DESCRIPTORS],
        direct: Option<OwnedFd>,
    ) -> WorkerFds {
        if !process::die_with(zygote) {
            exit::leave(1);
        }
        descendants::lead_group();
        self.exits.unblock();
        self.workers.clear();
        if self.ends_programs() {
            descendants::adopt();
        }
        self.confine_worker(number).unwrap_or_else(|error| {
            eprintln!("outboard-php: worker {number} cannot be confined: {error}");
            exit::leave(exit::CODE_SETUP);
        });
        let [receiving, sending] = self.memories.descriptors();
        for fd in [self.control.as_raw_fd(), self.exits.as_fd().as_raw_fd(), receiving, sending] {
            // SAFETY: the child uses none of them again, and never drops `self`.
            unsafe { libc::close(fd) };
        }
        let [memory, bell, gateway_bell, output] = descriptors;
        WorkerFds { memory, bell, gateway_bell, output, direct }
    }

    /// In the child: leaves nothing of its memory or of other processes to the code of the app.
    fn confine_worker(&mut self, number: u64) -> io::Result<()> {
        if self.settings.sandbox.is_some() && !self.is_program() {
            sandbox::enter_worker(process::parent().cast_signed())?;
        }
        self.memories.send(number)?;
        process::set_dumpable(self.settings.dumpable)
    }

    /// The processes of such a program signal each other.
    fn is_program(&self) -> bool {
        self.settings.worker.as_ref().is_some_and(|script| script.starts_server)
    }

    /// A pid is not reused before the zygote has reaped the worker.
    fn signal(&mut self, number: u64, signal: i32) {
        let Some(child) = self.workers.get_mut(&number) else { return };
        if signal == BACKTRACE_SIGNAL {
            let memory = self.memories.of(number);
            backtrace::request(child.pid, memory, &child.ring, &mut child.last_backtrace);
        } else {
            // SAFETY: a plain system call for a child of this process.
            unsafe { libc::kill(child.pid, signal) };
        }
    }

    fn place(&self, number: u64, cores: &[u16]) {
        let Some(child) = self.workers.get(&number) else { return };
        if let Err(error) = self.affinity.place(child.pid, cores) {
            eprintln!("outboard-php: worker {number} cannot run on cores {cores:?}: {error}");
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        self.exits.clear();
        let mut status = 0;
        loop {
            // SAFETY: `status` outlives the call.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                break;
            }
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
            self.of_boot.iter_mut().for_each(|known| known.retain(|known| *known != pid));
            let Some(number) = self.number_of(pid) else {
                if !self.sibling_exited(pid, code, signal)? {
                    self.others.iter_mut().for_each(|others| others.push(pid));
                }
                continue;
            };
            self.workers.remove(&number);
            self.memories.forget(number);
            if code != Some(0) {
                descendants::end_group(pid);
            }
            let event = Event::Exited { worker: number, code, signal };
            self.report(&event)?;
        }
        if self.ends_programs() {
            descendants::end_others(|pid| self.is_known(pid));
        }
        Ok(())
    }

    /// Whether what a request has started ends with it.
    fn ends_programs(&self) -> bool {
        let is_isolated = |script: &WorkerScript| script.isolation != Isolation::Reset;
        let script = self.settings.worker.as_ref();
        script.is_some_and(is_isolated) && !self.is_program() && !self.settings.background_programs
    }

    fn is_known(&self, pid: i32) -> bool {
        self.number_of(pid).is_some()
            || self.siblings.has(pid)
            || self.of_boot.as_ref().is_some_and(|known| known.contains(&pid))
    }

    fn number_of(&self, pid: i32) -> Option<u64> {
        self.workers.iter().find(|(_, child)| child.pid == pid).map(|(number, _)| *number)
    }
}

/// Forks this process without what is for forks of a script; `None` in the child.
fn fork_process() -> io::Result<Option<i32>> {
    engine::watch_children(false);
    // SAFETY: the process has one thread, so the child's copy is complete.
    let pid = unsafe { libc::fork() };
    let error = io::Error::last_os_error();
    engine::watch_children(true);
    match pid {
        -1 => Err(error),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}
