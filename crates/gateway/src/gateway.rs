//! The gateway's shared state: the present generation, its predecessors, and what all
//! connections use.
//!
//! One per process, on the one I/O thread, shared as `Rc`. [`crate::server`] starts, reloads and
//! stops it. Invariant: a generation that was replaced stays in `pools` until its last process
//! has gone, so that its rings are looked at to the end.

use crate::app::App;
use crate::buffers::BufferPool;
use crate::connections::Connections;
use crate::counters::Counters;
use crate::development::Development;
use crate::generation::{Generation, Sinks};
use crate::listener::Bound;
use crate::proxy::Turns;
use crate::upgrade::Protocol;
use outboard_buffer::Memory;
use outboard_buffer::TempDir;
use outboard_config::{Limits, MemoryBudget};
use outboard_http_semantics::DateCache;
use outboard_http1::HeadLimits;
use outboard_log::Reason;
use outboard_log::{Event as LogEvent, Level, Wall};
use outboard_php_pool::pool::{Budget, Pool};
use outboard_reactor::{Event, MemorySource, now_ms, wake_all};
use outboard_supervisor::memory::machine_bytes;
use rustix::process::{Resource, getrlimit};
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
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
    pub(crate) spool: Rc<TempDir>,
    /// Whose answer of another server is read next.
    pub(crate) inflow_turns: Rc<Turns>,
    pub(crate) started: Wall,
    /// Whether it has said that it serves.
    pub(crate) ready: Cell<bool>,
    /// What a named server is called.
    pub(crate) name: RefCell<Option<String>>,
    /// Bound for this server by somebody else.
    pub(crate) sockets: RefCell<Vec<OwnedFd>>,
    /// Whether the process that starts PHP has gone.
    pub(crate) lost_spawner: Cell<bool>,
    /// Asked for by the admin socket; the server's main task acts on it.
    pub(crate) wishes: Wishes,
    /// In development only.
    development: RefCell<Option<Rc<Development>>>,
    /// What connections can be switched to.
    pub(crate) protocols: Vec<Box<dyn Protocol>>,
    date: RefCell<DateCache>,
    /// What clients have open.
    pub(crate) connections: Rc<Connections>,
    turned_away: Cell<TurnedAway>,
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
        let requester = Rc::new(ReloadAsker::default());
        self.reload_askers.borrow_mut().push(requester.clone());
        self.reload.set();
        requester.hear().await
    }
}

impl Gateway {
    pub(crate) fn new(
        generation: Generation,
        sinks: Sinks,
        memory: Rc<Memory>,
        protocols: Vec<Box<dyn Protocol>>,
    ) -> Rc<Self> {
        let now = Wall::now();
        Rc::new(Self {
            spool: {
                let io = &generation.config.io;
                TempDir::new(io.temp_dir.clone(), io.max_temp_bytes)
            },
            inflow_turns: Rc::default(),
            pools: RefCell::new(generation.pools().cloned().collect()),
            generation: RefCell::new(Rc::new(generation)),
            listeners: RefCell::default(),
            sinks: RefCell::new(sinks),
            buffers: BufferPool::default(),
            memory,
            counters: RefCell::default(),
            started: now,
            ready: Cell::new(false),
            name: RefCell::default(),
            sockets: RefCell::default(),
            lost_spawner: Cell::new(false),
            wishes: Wishes::default(),
            development: RefCell::default(),
            protocols,
            date: RefCell::new(DateCache::new(now.unix_s())),
            connections: Connections::new(getrlimit(Resource::Nofile).current),
            turned_away: Cell::default(),
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
        self.memory.set_limit(memory_limit_bytes(self.limits().memory));
        self.spool.set_limit(self.generation().config.io.max_temp_bytes);
        self.sinks.replace(sinks);
        self.hand_purges_on(&old.apps);
        old.hand_over_tasks(&self.generation());
        old.pools().for_each(|pool| pool.retire(drain_timeout_ms));
    }

    /// What workers of the old generation purge is purged from the successors' caches as well.
    fn hand_purges_on(&self, old: &[Rc<App>]) {
        let generation = self.generation.borrow();
        let caches = generation
            .apps
            .iter()
            .filter_map(|app| Some((app.config.name.as_str(), app.page_cache.as_ref()?)));
        let caches: HashMap<&str, _> = caches.collect();
        for app in old {
            if let Some(cache) = &app.page_cache
                && let Some(successor) = caches.get(app.config.name.as_str())
            {
                cache.set_successor(successor);
            }
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

    /// Counts a connection or stream that was not let in, and logs it with those of the same second.
    pub(crate) fn turn_away(&self, peer: &str, reason: Reason) {
        self.counters.borrow_mut().refused(reason);
        let TurnedAway { count, told_ms } = self.turned_away.get();
        let (count, now_ms) = (count + 1, now_ms());
        if told_ms != 0 && now_ms < told_ms + 1_000 {
            return self.turned_away.set(TurnedAway { count, told_ms });
        }
        self.turned_away.set(TurnedAway { count: 0, told_ms: now_ms });
        let text = format!("client={peer}, and {} others since this was last said", count - 1);
        self.log_refusal(None, 0, reason, &text);
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

/// The limit of what is buffered for clients and workers. `"auto"` is an eighth of the machine, within
/// bounds: a large response is on disk, so more is rarely of use.
pub(crate) fn memory_limit_bytes(budget: MemoryBudget) -> usize {
    let machine_bytes = machine_bytes().unwrap_or(1 << 30);
    let bytes = match budget {
        MemoryBudget::Bytes(bytes) => bytes,
        MemoryBudget::Percent(percent) => machine_bytes / 100 * u64::from(percent),
        MemoryBudget::Auto => (machine_bytes / 8).clamp(16 << 20, 256 << 20),
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Connections and streams that were not let in.
#[derive(Debug, Clone, Copy, Default)]
struct TurnedAway {
    /// Since the last line in the log.
    count: u64,
    told_ms: u64,
}

/// The rings of all pools, as the loop sees them.
pub(crate) struct Rings {
    gateway: Rc<Gateway>,
    /// For the present turn of the loop.
    budget: Budget,
    /// Which pool is looked at first, so that each is when there is too much.
    first: usize,
}

impl Rings {
    pub(crate) fn new(gateway: Rc<Gateway>) -> Self {
        Self { gateway, budget: Budget::default(), first: 0 }
    }
}

impl MemorySource for Rings {
    fn look(&mut self) -> bool {
        let pools = self.gateway.pools.borrow();
        let mut had_news = false;
        let first = self.first % pools.len().max(1);
        for pool in pools[first..].iter().chain(&pools[..first]) {
            if self.budget.is_spent() {
                return true;
            }
            had_news |= pool.look(&mut self.budget);
        }
        had_news
    }

    fn prepare_sleep(&mut self) -> u64 {
        self.gateway
            .pools
            .borrow()
            .iter()
            .fold(u64::MAX, |most_ms, pool| most_ms.min(pool.prepare_sleep()))
    }

    fn cancel_sleep(&mut self) {
        self.gateway.pools.borrow().iter().for_each(|pool| pool.cancel_sleep());
        self.first = self.first.wrapping_add(usize::from(self.budget.is_spent()));
        self.budget = Budget::default();
    }
}

/// Ids go up from a number that differs from start to start, so that logs of two lives of a
/// server do not mix.
fn first_request_id(now: Wall) -> u64 {
    (now.unix_us ^ u64::from(std::process::id()) << 40) << 16 | 1
}
