//! [`Gateway`]: the state that everything on the event loop shares.
//!
//! One per process. [`crate::server`] starts, reloads and stops it. Invariant: the pools of a
//! replaced generation stay in `pools` until their last process has exited, so that their rings are
//! read to the end.

use crate::app::App;
use crate::control::ControlRequests;
use crate::generation::Generation;
use crate::logs::Sinks;
use crate::server_link::ServerLink;
use crate::shards::Shards;
use crate::spread::{Spread, SpreadPlace};
use crate::streams;
use outboard_buffer::{Memory, TempDir};
use outboard_certificates::Manager;
use outboard_config::{Config, ListenAddress, MemoryBudget};
use outboard_dashboard::{History, Paths};
use outboard_development::Development;
use outboard_http_server::{
    BoundListener, Http3Socket, ListeningSocket, ServerContext, ServerShared,
};
use outboard_log::{Event as LogEvent, Level, Reason, Wall};
use outboard_php_pool::RecentSlow;
use outboard_php_pool::processes::Processes;
use outboard_php_pool::renewal::seat::PoolList;
use outboard_reactor::Share;
use outboard_stream_server::BoundDatagram;
use outboard_supervisor::memory::machine_bytes;
use outboard_upstream::{ReadTurns, ScopedTask};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

/// How long a request that is debugged may go on after a reload.
const DEBUG_DRAIN_MS: u64 = 3_600_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Gateway {
    generation: RefCell<Rc<Generation>>,
    /// Pools of all generations that still have processes.
    pub(crate) pools: PoolList,
    pub(crate) listeners: RefCell<Vec<Rc<BoundListener>>>,
    /// Sockets of datagrams.
    pub(crate) datagrams: RefCell<Vec<Rc<BoundDatagram>>>,
    pub(crate) sinks: RefCell<Sinks>,
    /// The state that all connections share.
    pub(crate) server: Rc<ServerContext>,
    /// The order in which responses of other servers are read.
    pub(crate) read_turns: Rc<ReadTurns>,
    pub(crate) started: Wall,
    /// Whether the server has announced that it is ready.
    pub(crate) ready: Cell<bool>,
    /// The name of a named server.
    pub(crate) name: RefCell<Option<String>>,
    /// Sockets that were bound before the server started.
    pub(crate) sockets: RefCell<Vec<OwnedFd>>,
    /// Listening sockets for the other threads, by address.
    pub(crate) sockets_for_others: RefCell<Vec<(ListenAddress, Vec<ListeningSocket>)>>,
    /// The same of HTTP/3.
    pub(crate) http3_for_others: RefCell<Vec<(ListenAddress, Vec<Http3Socket>)>>,
    /// Checks of servers and lookups of their names, on the lead.
    pub(crate) upstream_tasks: RefCell<Vec<ScopedTask>>,
    /// Obtains certificates, on the lead.
    pub(crate) certificates: RefCell<Option<Manager>>,
    /// Its place among the threads.
    pub(crate) share: Share,
    /// Whether it serves, and which of its connections are to leave.
    pub(crate) spread: SpreadPlace,
    /// Whether the process that starts PHP has exited.
    pub(crate) lost_spawner: Cell<bool>,
    /// Requests of the admin socket to the server's main task.
    pub(crate) control: ControlRequests,
    /// The ways to the other servers of upgrades, on the lead.
    pub(crate) links: RefCell<Vec<Rc<dyn ServerLink>>>,
    /// The other threads.
    pub(crate) shards: Shards<Self>,
    /// What happened in the last hour; on the lead.
    pub(crate) history: RefCell<History>,
    /// Held once by each response that the dashboard is given.
    pub(crate) viewers: Rc<()>,
    /// The latest requests that took another server long.
    pub(crate) slow_proxied: RecentSlow,
    /// The most requested paths, while a dashboard is open.
    pub(crate) paths: Paths,
    /// Programs that run next to PHP, on the lead.
    pub(crate) processes: Rc<Processes>,
    /// Watches of their files, in development only.
    pub(crate) process_watches: RefCell<Vec<Rc<Development>>>,
    /// In development only.
    development: RefCell<Option<Rc<Development>>>,
    request_ids: Cell<u64>,
}

impl Gateway {
    /// The gateway of a thread.
    pub(crate) fn new(
        generation: Generation,
        sinks: Sinks,
        memory: Rc<Memory>,
        shared: &SharedByThreads,
        share: Share,
    ) -> Rc<Self> {
        let now = Wall::now();
        let config = &generation.config;
        let (limits, log) = (config.limits.clone(), generation.logs.error.clone());
        let server = ServerContext::new(limits, log, memory, &shared.server);
        Rc::new(Self {
            server,
            read_turns: Rc::default(),
            pools: listed(&generation),
            generation: RefCell::new(Rc::new(generation)),
            listeners: RefCell::default(),
            datagrams: RefCell::default(),
            sinks: RefCell::new(sinks),
            started: now,
            ready: Cell::new(false),
            name: RefCell::default(),
            sockets: RefCell::default(),
            sockets_for_others: RefCell::default(),
            http3_for_others: RefCell::default(),
            upstream_tasks: RefCell::default(),
            certificates: RefCell::default(),
            share,
            spread: SpreadPlace::new(shared.spread.clone(), share.index),
            lost_spawner: Cell::new(false),
            control: ControlRequests::default(),
            links: RefCell::default(),
            shards: Shards::default(),
            history: RefCell::default(),
            viewers: Rc::default(),
            slow_proxied: RecentSlow::default(),
            paths: Paths::default(),
            processes: Rc::default(),
            process_watches: RefCell::default(),
            development: RefCell::default(),
            request_ids: Cell::new(first_request_id(now, share.index)),
        })
    }

    /// Sets its name and the inherited sockets, before it listens.
    pub(crate) fn adopt(&self, name: Option<String>, sockets: Vec<OwnedFd>) {
        self.name.replace(name);
        self.sockets.replace(sockets);
    }

    /// The state of development mode; `None` in production.
    pub(crate) fn development(&self) -> Option<Rc<Development>> {
        self.development.borrow().clone()
    }

    pub(crate) fn set_development(&self, development: Option<Rc<Development>>) {
        self.development.replace(development);
    }

    /// The generation for new requests.
    pub(crate) fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// Activates a successor; the pools of its predecessor finish their requests.
    pub(crate) fn swap(&self, successor: Generation, sinks: Sinks, drain_timeout_ms: u64) {
        let old = self.generation.replace(Rc::new(successor));
        let generation = self.generation();
        let limits = generation.config.limits.clone();
        self.server.memory.set_limit(memory_limit_bytes(limits.memory));
        self.server.shared.temp_dir.set_limit(generation.config.io.max_temp_bytes);
        self.server.reconfigure(limits, generation.logs.error.clone());
        self.spread.set_gathers(generation.config.io.gather_connections);
        self.sinks.replace(sinks);
        self.forward_purges(&old.apps);
        streams::activate(&generation, &old.apps);
        old.hand_over_tasks(&self.generation());
        old.retire_pools(drain_timeout_ms);
        // A developer changes code while it is stopped at a breakpoint.
        let debugged = old.pools().filter(|pool| pool.is_debugged());
        debugged.for_each(|pool| pool.retire(drain_timeout_ms.max(DEBUG_DRAIN_MS)));
    }

    /// Lists the pools of a generation, and those that will replace them.
    pub(crate) fn list_pools(&self, generation: &Generation) {
        list_pools(&self.pools, generation);
    }

    /// Purges of the old generation's workers are applied to the new caches as well.
    fn forward_purges(&self, old: &[Rc<App>]) {
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

    /// The ids that a direct connection may use.
    pub(crate) const RESERVED_IDS: u32 = 1 << 16;

    /// Reserves the ids of a direct connection, and returns the first.
    pub(crate) fn reserve_request_ids(&self) -> u64 {
        let id = self.request_ids.get();
        self.request_ids.set(id.wrapping_add(Self::RESERVED_IDS.into()));
        id
    }

    pub(crate) fn next_request_id(&self) -> u64 {
        let id = self.request_ids.get();
        self.request_ids.set(id.wrapping_add(1));
        id
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
}

fn listed(generation: &Generation) -> PoolList {
    let pools = PoolList::default();
    list_pools(&pools, generation);
    pools
}

fn list_pools(pools: &PoolList, generation: &Generation) {
    for app in &generation.apps {
        app.seat.list_pools_in(pools);
        app.classic_snapshots.iter().for_each(|snapshots| snapshots.list_pools_in(pools));
    }
    pools.borrow_mut().extend(generation.pools());
}

/// What the gateways of so many threads share.
pub(crate) struct SharedByThreads {
    pub(crate) server: Arc<ServerShared>,
    spread: Arc<Spread>,
}

impl SharedByThreads {
    pub(crate) fn new(config: &Config, threads: usize) -> Arc<Self> {
        let temp_dir = TempDir::new(config.io.temp_dir.clone(), config.io.max_temp_bytes);
        Arc::new(Self {
            server: ServerShared::new(threads, temp_dir),
            spread: Arc::new(Spread::new(threads, config.io.gather_connections)),
        })
    }
}

/// The limit of buffers for clients and workers. `"auto"` is an eighth of the machine, within
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

/// Ids start at a number that differs between starts and threads, so that they do not mix in logs.
fn first_request_id(now: Wall, shard: usize) -> u64 {
    ((now.unix_us ^ u64::from(std::process::id()) << 40) << 16 | 1) ^ (shard as u64) << 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Site, in_loop, open};
    use outboard_config::Config;

    #[test]
    fn the_memory_limit_is_fixed_a_share_or_within_bounds() {
        assert_eq!(memory_limit_bytes(MemoryBudget::Bytes(5)), 5);
        let half = memory_limit_bytes(MemoryBudget::Percent(50));
        let all = memory_limit_bytes(MemoryBudget::Percent(100));
        assert!((all / 2).abs_diff(half) < 100, "{half} of {all}");
        let auto = memory_limit_bytes(MemoryBudget::Auto);
        assert!((16 << 20..=256 << 20).contains(&auto), "{auto}");
    }

    #[test]
    fn request_ids_increase_and_are_not_zero() {
        in_loop(async {
            let site = Site::new(&[], "");
            let first = site.gateway.next_request_id();
            assert_ne!(first, 0);
            assert_eq!(site.gateway.next_request_id(), first + 1);
        });
    }

    #[test]
    fn a_successor_serves_new_requests_with_its_limits() {
        in_loop(async {
            let site = Site::new(&[("a.txt", "a")], "");
            assert_eq!(site.get("/a.txt").await.status, 200);
            let old = site.app();
            let text =
                "[app.site]\nroot = \"www\"\ndeny = [\"*.txt\"]\n[limits]\nmemory = \"32 MiB\"\n";
            let file = site.directory().join("outboard.toml");
            let config = Config::parse(text, &file).unwrap();
            let (successor, sinks) = open(config, &site.gateway.server.memory);
            site.gateway.swap(successor, sinks, 0);
            assert_eq!(site.get("/a.txt").await.status, 404);
            assert!(old.pool().is_retired() && !site.app().pool().is_retired());
        });
    }
}
