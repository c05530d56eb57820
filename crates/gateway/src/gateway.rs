//! The gateway's shared state: the present generation, its predecessors, and what all
//! connections use.
//!
//! One per process, on the one I/O thread, shared as `Rc`. [`crate::server`] starts, reloads and
//! stops it. Invariant: a generation that was replaced stays in `pools` until its last process
//! has gone, so that its rings are looked at to the end.

use crate::app::App;
use crate::buffers::BufferPool;
use crate::counters::Counters;
use crate::development::Development;
use crate::generation::{Generation, Sinks};
use crate::listener::Bound;
use crate::log::{Event as LogEvent, Level, Wall};
use crate::memory::Memory;
use crate::pool::Pool;
use crate::reason::Reason;
use crate::upgrade::Protocol;
use outboard_config::Limits;
use outboard_http1::{DateCache, HeadLimits};
use outboard_reactor::{Event, MemorySource, TaskId, current_task, wake, wake_all};
use outboard_ring::doorbell::Doorbell;
use std::cell::{Cell, Ref, RefCell};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

/// What everything on the I/O thread shares.
#[derive(Debug)]
pub(crate) struct Gateway {
    generation: RefCell<Rc<Generation>>,
    /// Pools of all generations that still have processes.
    pub(crate) pools: RefCell<Vec<Rc<Pool>>>,
    pub(crate) listeners: RefCell<Vec<Rc<Bound>>>,
    pub(crate) sinks: RefCell<Sinks>,
    pub(crate) buffers: BufferPool,
    pub(crate) memory: Rc<Memory>,
    pub(crate) counters: RefCell<Counters>,
    pub(crate) spool_folder: PathBuf,
    /// All workers ring it; the loop watches it.
    pub(crate) doorbell: Doorbell,
    pub(crate) started: Wall,
    /// Whether it has said that it serves.
    pub(crate) ready: Cell<bool>,
    /// What a named server is called.
    pub(crate) name: RefCell<Option<String>>,
    /// Bound for this server by somebody else.
    pub(crate) sockets: RefCell<Vec<OwnedFd>>,
    /// Asked for by the admin socket; the server's main task acts on it.
    pub(crate) wishes: Wishes,
    /// In development only.
    development: RefCell<Option<Rc<Development>>>,
    /// What connections can be switched to.
    pub(crate) protocols: Vec<Box<dyn Protocol>>,
    date: RefCell<DateCache>,
    connections: Cell<u32>,
    waiting_for_room: RefCell<Vec<TaskId>>,
    draining: Cell<bool>,
    request_ids: Cell<u64>,
}

/// Orders of the admin socket.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) reload: Event,
    pub(crate) stop: Event,
    /// Who waits to hear of the reload; each is told of one that began after it was asked for.
    pub(crate) reload_askers: RefCell<Vec<Rc<ReloadAsker>>>,
}

/// Somebody who asked for a reload.
#[derive(Debug, Default)]
pub(crate) struct ReloadAsker {
    told: Event,
    /// The generation that serves, or why everything stays as it was.
    outcome: RefCell<Option<Result<u32, String>>>,
}

impl ReloadAsker {
    pub(crate) fn tell(&self, outcome: Result<u32, String>) {
        self.outcome.replace(Some(outcome));
        self.told.set();
    }

    async fn hear(&self) -> Result<u32, String> {
        loop {
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            self.told.wait().await;
        }
    }
}

impl Wishes {
    /// Asks for a reload and waits for its outcome.
    pub(crate) async fn reload_and_hear(&self) -> Result<u32, String> {
        let asker = Rc::new(ReloadAsker::default());
        self.reload_askers.borrow_mut().push(asker.clone());
        self.reload.set();
        asker.hear().await
    }
}

impl Gateway {
    pub(crate) fn new(
        generation: Generation,
        sinks: Sinks,
        doorbell: Doorbell,
        memory: Rc<Memory>,
        protocols: Vec<Box<dyn Protocol>>,
    ) -> Rc<Self> {
        let now = Wall::now();
        Rc::new(Self {
            spool_folder: generation.config.io.spool_dir.clone(),
            pools: RefCell::new(generation.pools().cloned().collect()),
            generation: RefCell::new(Rc::new(generation)),
            listeners: RefCell::default(),
            sinks: RefCell::new(sinks),
            buffers: BufferPool::default(),
            memory,
            counters: RefCell::default(),
            doorbell,
            started: now,
            ready: Cell::new(false),
            name: RefCell::default(),
            sockets: RefCell::default(),
            wishes: Wishes::default(),
            development: RefCell::default(),
            protocols,
            date: RefCell::new(DateCache::new(now.unix_s())),
            connections: Cell::new(0),
            waiting_for_room: RefCell::default(),
            draining: Cell::new(false),
            request_ids: Cell::new(first_request_id(now)),
        })
    }

    /// Takes its name and the sockets that were bound for it, before it listens.
    pub(crate) fn adopt(&self, name: Option<String>, sockets: Vec<OwnedFd>) {
        self.name.replace(name);
        self.sockets.replace(sockets);
    }

    /// What is special in development; `None` in production.
    pub(crate) fn development(&self) -> Option<Rc<Development>> {
        self.development.borrow().clone()
    }

    pub(crate) fn set_development(&self, development: Option<Rc<Development>>) {
        self.development.replace(development);
    }

    /// The generation for a request that begins now.
    pub(crate) fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// Puts a successor in place; its predecessor's pools finish what they have.
    pub(crate) fn swap(&self, successor: Generation, sinks: Sinks, drain_timeout_ms: u64) {
        let old = self.generation.replace(Rc::new(successor));
        self.memory.set_budget(self.limits().memory);
        self.sinks.replace(sinks);
        old.apps.iter().for_each(|app| self.hand_purges_on(app));
        old.hand_over_tasks(&self.generation());
        old.pools().for_each(|pool| pool.retire(drain_timeout_ms));
    }

    /// What a worker of the old generation purges is purged from the successor's cache as well.
    fn hand_purges_on(&self, old: &App) {
        let generation = self.generation.borrow();
        let same = generation.apps.iter().find(|app| app.config.name == old.config.name);
        if let (Some(cache), Some(app)) = (&old.page_cache, same)
            && let Some(successor) = &app.page_cache
        {
            cache.succeeded_by(successor);
        }
    }

    /// Connection limits of the present generation.
    pub(crate) fn limits(&self) -> Ref<'_, Limits> {
        Ref::map(self.generation.borrow(), |generation| &generation.config.limits)
    }

    pub(crate) fn head_limits(&self) -> HeadLimits {
        let limits = self.limits();
        let number = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        HeadLimits {
            request_line_bytes: number(limits.request_line_bytes),
            header_bytes: number(limits.header_bytes),
            header_count: limits.header_count as usize,
        }
    }

    /// Appends the Date field.
    pub(crate) fn put_date(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.date.borrow_mut().line(Wall::now().unix_s()));
    }

    pub(crate) fn next_request_id(&self) -> u64 {
        let id = self.request_ids.get();
        self.request_ids.set(id.wrapping_add(1));
        id
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// No more requests are begun; idle connections close.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        wake_all();
    }

    pub(crate) fn connections(&self) -> u32 {
        self.connections.get()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.connections.get() >= self.limits().max_connections
    }

    /// Has the current task woken when a connection closes.
    pub(crate) fn wait_for_room(&self) {
        self.waiting_for_room.borrow_mut().push(current_task());
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.set(self.connections.get() + 1);
        self.counters.borrow_mut().connections += 1;
    }

    pub(crate) fn connection_closed(&self) {
        self.connections.set(self.connections.get() - 1);
        for task in self.waiting_for_room.take() {
            wake(task);
        }
    }

    /// Logs a refused or failed request with its reason.
    pub(crate) fn log_refusal(
        &self,
        app: Option<&App>,
        request_id: u64,
        reason: Reason,
        text: &str,
    ) {
        let level = if reason.is_server_fault() { Level::Error } else { Level::Info };
        let event = LogEvent {
            app: app.map(|app| app.config.name.as_str()),
            request: (request_id != 0).then_some(request_id),
            reason: Some(reason),
            text,
            ..LogEvent::default()
        };
        match app {
            Some(app) => app.logs.error.write(level, event),
            None => self.generation().logs.error.write(level, event),
        }
    }

    /// Logs something about the server itself.
    pub(crate) fn note(&self, level: Level, text: &str) {
        self.generation.borrow().logs.error.note(level, text);
    }
}

/// The rings of all pools, as the loop sees them.
pub(crate) struct Rings(pub(crate) Rc<Gateway>);

impl MemorySource for Rings {
    fn look(&mut self) -> bool {
        self.0.pools.borrow().iter().fold(false, |any, pool| pool.look() | any)
    }

    fn prepare_sleep(&mut self) -> u64 {
        self.0
            .pools
            .borrow()
            .iter()
            .fold(u64::MAX, |most_ms, pool| most_ms.min(pool.prepare_sleep()))
    }

    fn cancel_sleep(&mut self) {
        self.0.pools.borrow().iter().for_each(|pool| pool.cancel_sleep());
    }
}

/// Ids go up from a number that differs from start to start, so that logs of two lives of a
/// server do not mix.
fn first_request_id(now: Wall) -> u64 {
    (now.unix_us ^ u64::from(std::process::id()) << 40) << 16 | 1
}
