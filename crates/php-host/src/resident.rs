//! Worker mode: runs the script that stays, and is what its callbacks find.
//!
//! Called by the worker (isolation by reset) and by the zygote (isolation by fork). Invariants:
//! the gateway hears `Ready` when the script first asks for a request, and not before; in a zygote
//! that call returns in the forks only.

use crate::engine::{self, Verdict};
use crate::events::{Event, Events};
use crate::link::Link;
use crate::purge;
use crate::swoole;
use crate::worker::End;
use crate::zygote::Forking;
use outboard_ring::channel::WaitCall;
use outboard_ring::control::WorkerScript;
use outboard_ring::frame::Tag;
use outboard_ring::operation::Call;
use outboard_ring::purge::PurgeCall;
use outboard_ring::spsc::Corrupt;
use std::cell::RefCell;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

/// What a resident script's callbacks work on.
#[derive(Debug)]
pub(crate) struct Resident {
    /// None in a zygote, before the fork.
    events: Option<Events>,
    /// In a zygote, before the fork.
    forking: Option<Forking>,
    /// A fork answers one request.
    is_fork: bool,
    /// Whether the script is a program of Swoole, and what its start means in this process.
    program: Option<Program>,
}

/// A program of Swoole.
#[derive(Debug)]
pub(crate) enum Program {
    /// It is only read: the description of its server goes here, and the process ends.
    Described(File),
    /// Workers are forked at its start.
    Started,
}

/// Runs the script in a worker of its own.
pub(crate) fn serve(script: &WorkerScript, link: Rc<RefCell<Link>>) -> Result<End, Corrupt> {
    let events = Events::new(link).map_err(|_| Corrupt { what: "no epoll for the worker" })?;
    let mut resident =
        Resident { events: Some(events), forking: None, is_fork: false, program: None };
    let sound = run(script, &mut resident);
    resident.end(sound)
}

/// Runs a program of Swoole that has no gateway, up to its server's start, whose description goes to
/// `description`. Returns when it ends without one.
pub(crate) fn describe(script: &WorkerScript, link: Rc<RefCell<Link>>, description: File) {
    let Ok(events) = Events::new(link) else { return };
    let program = Some(Program::Described(description));
    let mut resident = Resident { events: Some(events), forking: None, is_fork: false, program };
    run(script, &mut resident);
}

/// Runs the script in a zygote: each fork serves one request and leaves. Returns when the script
/// has ended without a call for a request.
pub(crate) fn snapshot(script: &WorkerScript, forking: Forking) -> Forking {
    // A program may use coroutines before its server starts.
    let events =
        if script.swoole { swoole::private_link().and_then(Events::new).ok() } else { None };
    let program = script.swoole.then_some(Program::Started);
    let mut resident = Resident { events, forking: Some(forking), is_fork: false, program };
    let sound = run(script, &mut resident);
    match resident.forking.take() {
        Some(forking) => forking,
        None => crate::worker::end(0, resident.end(sound)),
    }
}

fn run(script: &WorkerScript, resident: &mut Resident) -> bool {
    let Ok(path) = CString::new(script.script.as_os_str().as_bytes()) else { return false };
    let report = script.state_report.as_ref();
    let report = report.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if script.swoole {
        engine::prepare_swoole(&script.arguments);
    }
    // SAFETY: `resident` is used by the callbacks alone until this returns.
    unsafe {
        engine::run_resident(
            &path,
            (&raw mut *resident).cast(),
            script.frankenphp,
            script.concurrency.max(1),
            report.as_deref(),
        )
    }
}

impl Resident {
    fn end(&mut self, sound: bool) -> Result<End, Corrupt> {
        let failed = self.events.as_ref().and_then(|events| events.failed);
        match failed {
            Some(corrupt) => Err(corrupt),
            None if self.is_fork => Ok(End::Answered),
            None if sound => Ok(End::Asked),
            None => Ok(End::NeverReady),
        }
    }

    /// The worker's events. The C side asks for them in a worker only.
    pub(crate) fn events(&mut self) -> &mut Events {
        self.events.as_mut().expect("a zygote has no coroutines, so nothing waits in it")
    }

    /// The script asks for its first request.
    pub(crate) fn ready(&mut self) {
        if let Some(events) = &mut self.events
            && let Err(corrupt) = events.link.clone().borrow_mut().ready()
        {
            events.failed = Some(corrupt);
        }
    }

    /// Whether the snapshot is still to be made.
    pub(crate) fn is_forking(&self) -> bool {
        self.forking.is_some() && self.events.is_none()
    }

    /// In a zygote: forks workers until told to leave; true in each of them. Else false at once.
    pub(crate) fn snapshot(&mut self) -> bool {
        if self.program.is_some() || self.forking.is_none() {
            return false;
        }
        if !self.fork_workers() {
            crate::worker::leave(0);
        }
        self.is_fork = true;
        true
    }

    /// Forks workers until told to leave; true in each of them.
    pub(crate) fn fork_workers(&mut self) -> bool {
        // Forks do not inherit the memory of a ring: what goes here is not unmapped there.
        self.events = None;
        let link = self.forking.take().and_then(Forking::fork_workers);
        let is_worker = link.is_some();
        let events = link.map_or_else(swoole::private_link, Ok).and_then(Events::new);
        match events {
            Ok(events) => self.events = Some(events),
            Err(_) => crate::worker::leave(crate::worker::CODE_SETUP),
        }
        is_worker
    }

    /// The server of a program of Swoole is to start: the end of a program that is only read.
    pub(crate) fn describe(&mut self, description: &[u8]) {
        if let Some(Program::Described(target)) = &mut self.program {
            // The reader reports what it misses.
            let _ = target.write_all(description);
            crate::worker::leave(0);
        }
    }

    /// Whether nothing is waited for.
    pub(crate) fn is_idle(&self) -> bool {
        self.events.as_ref().is_none_or(Events::is_idle)
    }

    /// What is to be done next.
    pub(crate) fn next(&mut self, may_start: bool, may_block: bool) -> Event {
        match &mut self.events {
            Some(events) => events.next(may_start, may_block),
            None => Event::Stop,
        }
    }

    /// The request with this tag is over.
    pub(crate) fn done(&mut self, tag: Tag, verdict: Verdict) {
        let leaving = verdict.leaving || self.is_fork;
        if let Some(events) = &mut self.events {
            events.done(tag, Verdict { leaving, ..verdict });
        }
    }

    /// Counts a wait.
    pub(crate) fn count_wait(&mut self, call: WaitCall, blocked_us: Option<u64>) {
        if let Some(events) = &mut self.events {
            events.link.borrow().count_wait(call, blocked_us);
        }
    }

    /// Begins a fetch, or a task.
    pub(crate) fn fetch(&mut self, request: Tag, waiter: u64, call: Call<'_>, body: &[u8]) -> u64 {
        let Some(events) = &mut self.events else { return 0 };
        let link = events.link.clone();
        let mut link = link.borrow_mut();
        link.count_wait(WaitCall::Gateway, None);
        events.fetches.begin(&mut link, request, waiter, call, body).unwrap_or_else(|corrupt| {
            events.failed.get_or_insert(corrupt);
            0
        })
    }

    /// Purges pages of the app's cache; `None` in a zygote, which has no gateway to ask.
    pub(crate) fn purge(&mut self, request: Tag, call: &PurgeCall<'_>) -> Option<u64> {
        let events = self.events.as_ref()?;
        purge::through(&mut events.link.borrow_mut(), request, call)
    }

    /// A fetch's answer was taken, or is not wanted.
    pub(crate) fn free_fetch(&mut self, operation: u64) {
        let Some(events) = &mut self.events else { return };
        let link = events.link.clone();
        if let Err(corrupt) = events.fetches.free(&mut link.borrow_mut(), operation) {
            events.failed.get_or_insert(corrupt);
        }
    }
}
