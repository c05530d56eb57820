//! [`Instance`]: one of the places of a process in which its program runs: what is wanted of it, and what it does.
//!
//! Created and ordered by [`super::Processes`]; its task is [`super::run`]. Invariant: one task runs its program, so that
//! there is never a second one.

use super::settings::ProcessSettings;
use crate::allowance::Allowance;
use outboard_admin_api::status as api;
use outboard_log::{ErrorLog, Event as LogEvent, Level};
use outboard_reactor::{Event, now_ms};
use outboard_supervisor::keeper::Family;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What an instance does; the status has the name in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The server that this one takes over from still has it.
    Held,
    Starting,
    Running,
    /// It was requested to end.
    Stopping,
    /// It has ended early, and is started again later.
    Waiting,
}

/// Which instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) app: String,
    pub(super) name: String,
    pub(super) number: u32,
}

impl Place {
    /// For another process of the server.
    pub(super) fn key(&self) -> String {
        format!("{}/{}/{}", self.app, self.name, self.number)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) place: Place,
    settings: RefCell<Rc<ProcessSettings>>,
    log: RefCell<Rc<ErrorLog>>,
    allowance: RefCell<Rc<Allowance>>,
    is_wanted: Cell<bool>,
    /// Whether the program is to end for another one to begin.
    is_renewed: Cell<bool>,
    is_held: Cell<bool>,
    /// Set with each of these.
    pub(super) changed: Event,
    pub(super) now: RefCell<Now>,
}

/// What it does now.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) state: State,
    since_ms: u64,
    pub(super) pid: Option<i32>,
    pub(super) family: Family,
    pub(super) starts: u64,
    pub(super) last_end: Option<String>,
}

impl Instance {
    pub(super) fn new(
        place: Place,
        settings: ProcessSettings,
        log: Rc<ErrorLog>,
        is_held: bool,
    ) -> Rc<Self> {
        let allowance = Rc::new(Allowance::new(settings.log_rate));
        let now = Now {
            state: State::Starting,
            since_ms: now_ms(),
            pid: None,
            family: Family::default(),
            starts: 0,
            last_end: None,
        };
        Rc::new(Self {
            place,
            settings: RefCell::new(Rc::new(settings)),
            log: RefCell::new(log),
            allowance: RefCell::new(allowance),
            is_wanted: Cell::new(true),
            is_renewed: Cell::new(false),
            is_held: Cell::new(is_held),
            changed: Event::default(),
            now: RefCell::new(now),
        })
    }

    /// Takes over the settings of a reload. The program goes on unless it would be another one.
    pub(super) fn configure(&self, settings: ProcessSettings, log: Rc<ErrorLog>) {
        let before = self.settings.replace(Rc::new(settings));
        let settings = self.settings();
        if before.log_rate != settings.log_rate {
            self.allowance.replace(Rc::new(Allowance::new(settings.log_rate)));
        }
        self.log.replace(log);
        self.is_wanted.set(true);
        if !before.start_the_same_as(&settings) {
            self.renew();
        }
    }

    /// Has the program end, and another one begin.
    pub(super) fn renew(&self) {
        self.is_renewed.set(true);
        self.changed.set();
    }

    /// Has the program end for good.
    pub(super) fn retire(&self) {
        self.is_wanted.set(false);
        self.changed.set();
    }

    /// The other server has it no more.
    pub(super) fn release(&self) {
        self.is_held.set(false);
        self.changed.set();
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.get()
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held.get()
    }

    /// Whether the program was requested to end.
    pub(super) fn is_to_end(&self) -> bool {
        !self.is_wanted.get() || self.is_renewed.get()
    }

    /// A program begins with the present settings.
    pub(super) fn begin(&self) -> Rc<ProcessSettings> {
        debug_assert!(self.now.borrow().pid.is_none(), "a second program begins");
        self.is_renewed.set(false);
        self.enter(State::Starting);
        self.settings()
    }

    pub(super) fn settings(&self) -> Rc<ProcessSettings> {
        self.settings.borrow().clone()
    }

    pub(super) fn allowance(&self) -> Rc<Allowance> {
        self.allowance.borrow().clone()
    }

    pub(super) fn enter(&self, state: State) {
        let mut now = self.now.borrow_mut();
        if now.state != state {
            (now.state, now.since_ms) = (state, now_ms());
        }
    }

    /// Logs an event of the instance.
    pub(super) fn log(&self, level: Level, text: &str) {
        self.add(level, text);
        self.flush();
    }

    /// Adds a line, which [`Self::flush`] writes.
    pub(super) fn add(&self, level: Level, text: &str) {
        let Place { app, name, number } = &self.place;
        let (text, worker) = (format!("{name}/{number}: {text}"), self.now.borrow().pid);
        let event = LogEvent { app: Some(app), worker, text: &text, ..LogEvent::default() };
        self.log.borrow().add(level, event);
    }

    pub(super) fn flush(&self) {
        self.log.borrow().flush();
    }

    pub(super) fn status(&self) -> api::Process {
        let (place, now) = (self.place.clone(), self.now.borrow());
        api::Process {
            app: place.app,
            name: place.name,
            instance: place.number,
            state: format!("{:?}", now.state).to_lowercase(),
            pid: now.pid,
            for_ms: now_ms().saturating_sub(now.since_ms),
            starts: now.starts,
            memory_bytes: now.family.memory_bytes,
            processes: now.family.processes,
            last_end: now.last_end.clone(),
        }
    }
}
