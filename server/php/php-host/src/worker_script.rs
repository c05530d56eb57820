//! Worker mode: runs the worker script, and serves its callbacks.
//!
//! [`rewinding`] has what isolation by rewind adds, [`gateway_calls`] what a script asks of the gateway.
//!
//! Called by the worker (isolation by reset) and by `boot` (isolation by fork). Invariants: the
//! gateway receives `Ready` when the script first calls for a request; in a zygote that call
//! returns only in the forks.

mod gateway_calls;
mod rewinding;

use crate::boot_files;
use crate::engine;
use crate::engine::request::{RequestResult, Scratch};
use crate::engine::structures::Request;
use crate::events::{Event, Events};
use crate::exit::{self, ExitReason};
use crate::forking::{Forked, Forking};
use crate::kept_connections::KeptConnections;
use crate::link::Link;
use crate::process;
use crate::rewind::{self, Rewind};
use crate::stalls::{self, Stalls};
use outboard_ring::control::{Isolation, RequestRead, WorkerScript};
use outboard_ring::frame::Tag;
use outboard_ring::request::RequestView;
use outboard_ring::spsc::Corrupt;
use std::cell::RefCell;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::SystemTime;

/// The results of [`RunningScript::fork_workers`] that are no process ids.
const FORKED_WORKER: i32 = -1;
const FORKED_LEAVE: i32 = 0;

/// The state behind the script's callbacks.
#[derive(Debug)]
pub(crate) struct RunningScript {
    /// `None` in a zygote, before the fork.
    events: Option<Events>,
    /// `Some` in a zygote, before the fork.
    forking: Option<Forking>,
    /// A fork handles one request, or is rewound after each.
    is_fork: bool,
    /// Whether the gateway knows that this worker is ready.
    is_announced: bool,
    /// Whether workers are rewound.
    is_rewinding: bool,
    /// Once the snapshot was taken.
    rewind: Option<Rewind>,
    /// The end of a request, which the gateway learns once the script has ended.
    ended: Option<(Tag, RequestResult)>,
    /// In a worker that is rewound.
    pub(crate) kept_connections: KeptConnections,
    /// Descriptors that the host has opened before the script ran.
    own_descriptors: Vec<RawFd>,
    /// Until the script first calls for a request, if it may have several at a time.
    stalls: Option<Stalls>,
    /// What the start of a server means in this process, if the script starts one itself.
    program: Option<Program>,
}

/// A program that starts a server.
#[derive(Debug)]
pub(crate) enum Program {
    /// The description of its server goes to this file, and the process exits.
    Described(File),
    /// Workers are forked when its server starts.
    Served,
}

pub(crate) fn serve(
    settings: &WorkerScript,
    link: Rc<RefCell<Link>>,
) -> Result<ExitReason, Corrupt> {
    let events = Events::new(link).map_err(|_| Corrupt { what: "no epoll for the worker" })?;
    let mut script = RunningScript::new(Some(events), None, None);
    if settings.concurrency > 1 {
        script.stalls = Stalls::new().inspect_err(report_unwatched).ok();
    }
    let sound = run(settings, &mut script);
    script.end(sound)
}

/// Runs a program without a gateway, up to the start of its server, whose description goes to
/// `description`. Returns if the program ends without one.
#[cfg_attr(not(programs), expect(dead_code, reason = "of `outboard-php run`"))]
pub(crate) fn describe(settings: &WorkerScript, link: Rc<RefCell<Link>>, description: File) {
    let Ok(events) = Events::new(link) else { return };
    let program = Some(Program::Described(description));
    let mut script = RunningScript::new(Some(events), None, program);
    run(settings, &mut script);
}

/// Runs the script in a zygote: each fork handles one request and exits. Returns if the script has
/// ended without a call for a request.
pub(crate) fn snapshot(settings: &WorkerScript, forking: Forking) -> Forking {
    // A program may use coroutines before its server starts.
    let events =
        if settings.starts_server { Link::private().and_then(Events::new).ok() } else { None };
    let program = settings.starts_server.then_some(Program::Served);
    let mut script = RunningScript::new(events, Some(forking), program);
    script.is_rewinding = settings.isolation == Isolation::Rewind;
    script.own_descriptors = rewind::open_descriptors().unwrap_or_default();
    let sound = run(settings, &mut script);
    match script.forking.take() {
        Some(forking) => forking,
        None => exit::end(0, script.end(sound)),
    }
}

fn run(settings: &WorkerScript, script: &mut RunningScript) -> bool {
    let Ok(path) = CString::new(settings.script.as_os_str().as_bytes()) else { return false };
    let report = settings.state_report.as_ref();
    let report = report.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if settings.starts_server && !cfg!(programs) {
        eprintln!(
            "outboard-php: this script starts a server, and the host was built without that part"
        );
        return false;
    }
    if settings.starts_server {
        engine::worker_script::prepare_program(&settings.arguments);
    }
    let frame = settings.boot_request.as_deref();
    let Ok(mut view) = frame.map(RequestView::decode).transpose() else { return false };
    if let Some(view) = &mut view {
        // For OPcache a script is too new to be stored if it was changed after the request.
        view.fixed.received_us = wall_clock_us();
    }
    let mut scratch = Scratch::default();
    let boot_request = view.map(|view| Request::describe(&view, &mut scratch));
    boot_files::resume(&settings.script);
    // SAFETY: only the callbacks use `script` until this returns.
    unsafe {
        engine::worker_script::run(
            &path,
            (&raw mut *script).cast(),
            settings,
            report.as_deref(),
            boot_request.as_ref(),
        )
    }
}

fn report_unwatched(error: &io::Error) {
    eprintln!("outboard-php: calls that block this worker are not reported: {error}");
}

fn wall_clock_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl RunningScript {
    /// On the heap, because a rewind puts the stack back.
    fn new(
        events: Option<Events>,
        forking: Option<Forking>,
        program: Option<Program>,
    ) -> Box<Self> {
        Box::new(Self {
            events,
            forking,
            is_fork: false,
            is_announced: false,
            is_rewinding: false,
            rewind: None,
            ended: None,
            kept_connections: KeptConnections::default(),
            own_descriptors: Vec::new(),
            stalls: None,
            program,
        })
    }

    fn end(&mut self, sound: bool) -> Result<ExitReason, Corrupt> {
        stalls::end();
        self.leave_after_request();
        let failed = self.events.as_ref().and_then(|events| events.failed);
        match failed {
            Some(corrupt) => Err(corrupt),
            None if self.is_fork => Ok(ExitReason::ForkDone),
            None if sound => Ok(ExitReason::Stopped),
            None => Ok(ExitReason::NeverReady),
        }
    }

    /// The worker's events. Panics in a zygote, where the C side never needs them.
    pub(crate) fn events(&mut self) -> &mut Events {
        self.events.as_mut().expect("a zygote has no coroutines, so nothing waits in it")
    }

    /// The script calls for its first request, or does so again after a rewind.
    pub(crate) fn ready(&mut self) {
        if std::mem::replace(&mut self.is_announced, true) {
            return;
        }
        if let Some(events) = &mut self.events
            && let Err(corrupt) = events.link.clone().borrow_mut().ready()
        {
            events.failed = Some(corrupt);
        }
        if let Some(stalls) = self.stalls.take() {
            stalls.watch().unwrap_or_else(|error| report_unwatched(&error));
        }
    }

    /// Whether this is a zygote before the snapshot.
    pub(crate) fn is_forking(&self) -> bool {
        self.forking.is_some() && self.program.is_none()
    }

    /// In a zygote before the snapshot: reports what the script has read until now.
    pub(crate) fn end_boot(&mut self) {
        if self.program.is_none()
            && let Some(forking) = &mut self.forking
        {
            forking.report_files();
        }
    }

    /// In a zygote: forks workers until it is stopped, and returns true in each of them. In a worker that was
    /// rewound it returns true at once, else false.
    pub(crate) fn snapshot(&mut self) -> bool {
        if self.is_fork {
            return true;
        }
        if !self.is_forking() {
            return false;
        }
        if self.fork_workers() != FORKED_WORKER {
            exit::leave(0);
        }
        self.is_fork = true;
        true
    }

    /// Forks workers. Returns [`FORKED_WORKER`] in each of them; in the zygote the id of a child of the
    /// program that has exited, after which it is called again, or [`FORKED_LEAVE`].
    pub(crate) fn fork_workers(&mut self) -> i32 {
        // Forks do not inherit the memory of a ring, so it must be unmapped here and not there.
        self.events = None;
        let mut forking = self.forking.take();
        if self.program.is_some() {
            forking.iter_mut().for_each(Forking::watch_others);
        }
        let (link, result) = match forking.map_or(Forked::Leave, Forking::fork_workers) {
            Forked::Worker(link) => (Ok(link), FORKED_WORKER),
            Forked::Leave => (Link::private(), FORKED_LEAVE),
            Forked::Exited(pid, forking) => {
                self.forking = Some(*forking);
                (Link::private(), pid)
            }
        };
        match link.and_then(Events::new) {
            Ok(events) => self.events = Some(events),
            Err(_) => exit::leave(exit::CODE_SETUP),
        }
        result
    }

    /// The server of a program is about to start. Exits if the program is only described. False:
    /// this process forks no workers, such as a child of the program.
    pub(crate) fn describe(&mut self, description: &[u8]) -> bool {
        if let Some(Program::Described(target)) = &mut self.program {
            // The reader reports an incomplete description.
            let _ = target.write_all(description);
            exit::leave(0);
        }
        self.forking.is_some()
    }

    /// Sets the name that `ps` shows, except of a process in which a program is only described: its
    /// command line and environment are still in use.
    pub(crate) fn set_title(&self, title: &str) -> bool {
        let is_described = matches!(self.program, Some(Program::Described(_)));
        if !is_described {
            process::set_title(title, title);
        }
        !is_described
    }

    /// In a child that a program has forked: an event loop of its own. False: there is none.
    pub(crate) fn renew(&mut self) -> bool {
        // The parent's is not this process's to close: its ring is not mapped here.
        std::mem::forget(self.events.take());
        self.program = None;
        self.forking.take().into_iter().for_each(Forking::leave_to_child);
        self.events = Link::private().and_then(Events::new).ok();
        self.events.is_some()
    }

    /// The boot has read this of a request, before the snapshot.
    pub(crate) fn request_read(&mut self, read: RequestRead) {
        if let Some(forking) = &mut self.forking {
            forking.add_request_read(read);
        }
    }

    /// The script ends instead of taking a snapshot.
    pub(crate) fn refuse_snapshot(&mut self, why: String) {
        if let Some(forking) = &mut self.forking {
            forking.refuse(why);
        }
    }

    /// Whether nothing is waited for.
    pub(crate) fn is_idle(&self) -> bool {
        self.events.as_ref().is_none_or(Events::is_idle)
    }

    /// The next event.
    pub(crate) fn next(&mut self, may_start: bool, may_block: bool) -> Event {
        match &mut self.events {
            Some(events) => events.next(may_start, may_block),
            None => Event::Stop,
        }
    }
}
