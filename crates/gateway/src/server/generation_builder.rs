//! [`GenerationBuilder`]: opens the generations of a server.
//!
//! Called by the server at start and at each reload. Invariants: a generation that cannot be opened
//! leaves no process behind; other tasks run between any two of its apps.

use crate::access::{RateLimits, RateOperations};
use crate::app::{App, Caches, Common};
use crate::classic_snapshots::{ClassicSnapshots, Surroundings};
use crate::generation::{self, Generation};
use crate::logs::{Logs, Sinks};
use crate::page_cache::PurgeOperations;
use crate::pool_starter::PoolStarter;
use crate::privileges::Privileges;
use crate::server::generation_shards::{GenerationShards, LEAD};
use crate::server_error::ServerError;
use crate::snapshot_operations::SnapshotOperations;
use crate::streams::{self, StreamOperations};
use crate::upgrade_link::UpgradeLink;
use outboard_buffer::{Account, Memory};
use outboard_config::{Config, Mode};
use outboard_operations::{Entities, FetchOperations, Owner};
use outboard_php_pool::pool::operations::Operations;
use outboard_php_pool::pool::{Pool, PoolSettings, Shard};
use outboard_php_pool::renewal::seat::PoolSeat;
use outboard_php_pool::tasks::journal::TaskJournal;
use outboard_php_pool::tasks::{self, Tasks};
use outboard_php_pool::{RecentSlow, Rings};
use outboard_reactor::{Share, unbound, yield_now};
use outboard_stream_server::StreamServer;
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// The settings that all generations share.
pub(crate) struct GenerationBuilder {
    pub(crate) name: Option<String>,
    pub(crate) host_binary: PathBuf,
    pub(crate) memory: Rc<Memory>,
    pub(crate) rings: Rc<Rings>,
    /// The latest slow requests of this thread.
    pub(crate) slow: Rc<RecentSlow>,
    pub(crate) privileges: Arc<Privileges>,
    /// The place of this thread; the first is the lead.
    pub(crate) share: Share,
    /// The way to the server that this one takes over from, on the lead.
    pub(crate) link: Option<Rc<UpgradeLink>>,
}

impl GenerationBuilder {
    /// Opens the logs and directories of a configuration and starts its pools.
    ///
    /// # Errors
    /// The file, directory or pool that cannot be used.
    pub(crate) async fn open(
        &self,
        number: u32,
        config: Config,
        predecessor: Option<&Generation>,
        shared: &GenerationShards,
    ) -> Result<(Generation, Sinks), ServerError> {
        let is_lead = self.share.index == LEAD;
        let mut sinks = Sinks::new(self.privileges.opener(), &shared.logs);
        let cannot_log = |error: io::Error| {
            ServerError::setup_because(format!("cannot open a log: {error}"), error)
        };
        let server_logs = sinks.open_logs(&config.log).await.map_err(cannot_log)?;
        let upstream = generation::upstream_client(&shared.upstream, predecessor);
        let before = predecessor.and_then(|before| before.entities.as_ref());
        let entities = match is_lead {
            true => unbound(|| {
                let elsewhere = self.link.as_ref().map(|link| link.elsewhere());
                Entities::open(&config, before, elsewhere, &server_logs.error)
            }),
            false => Ok(Entities::without_store(&config)),
        };
        let entities = entities.map_err(ServerError::setup)?;
        let sharing = predecessor.and_then(|before| before.rate_sharing.as_ref());
        let sharing = shared.access.rate_sharing(&config, sharing, &upstream, &server_logs.error);
        let started = StartedPools::new(self.rings.clone());
        let mut apps = Vec::new();
        for app in &config.apps {
            yield_now().await;
            let logs = Rc::new(sinks.open_logs(&app.log).await.map_err(cannot_log)?);
            let mut settings =
                PoolSettings::of(app, &self.host_binary, self.privileges.spawner.as_ref())
                    .map_err(ServerError::setup)?;
            if let Some(name) = &self.name {
                settings.host.app = title(name, app, &config);
            }
            let memory = self.memory.of_app(&app.name);
            let operations_memory = memory.operations.clone();
            let tasks = match app.tasks.as_ref().filter(|_| is_lead) {
                None => None,
                Some(tasks) => {
                    let settings = settings.of_tasks(app, tasks).map_err(ServerError::setup)?;
                    let pool = started.start(settings, Shard::only(), &logs)?;
                    let memory = operations_memory.clone();
                    let entities = entities.as_deref();
                    let tasks = start_tasks(app, tasks, (pool, memory), entities, &logs);
                    self.begin_tasks(&tasks, predecessor);
                    Some(tasks)
                }
            };
            // Development mode watches all files itself.
            let lists = config.development.is_none();
            settings.host.worker.iter_mut().for_each(|worker| worker.lists_files &= lists);
            let shard = shared.pool(&app.name).place(self.share.index);
            let classic = matches!(app.mode, Mode::Classic).then(|| settings.clone());
            let pool = started.start(settings.clone(), shard.clone(), &logs)?;
            let app_logs = logs.clone();
            let own = Caches::Own { is_first: predecessor.is_none() };
            let caches = shared.caches(&app.name).cloned().map_or(own, Caches::OfLead);
            let account = shared.upstream_account(&app.name).clone();
            let client = (upstream.clone(), account.clone());
            let streams = streams::server_for(app, predecessor, || {
                StreamServer::new(&app.name, &operations_memory, logs.error.clone())
            });
            let background = (tasks.clone(), streams.clone());
            let (snapshots, renewal) = shared.snapshots(&app.name).clone();
            let common = Common {
                caches,
                rate_limits: RateLimits::open(app, &shared.access, sharing.as_ref()),
                upstreams: shared.upstreams.clone(),
                snapshots: snapshots.clone(),
            };
            // A page cache has threads.
            let opened =
                unbound(|| App::open(app.clone(), pool, background, logs, client, memory, common));
            let mut opened =
                opened.map_err(|error| ServerError::setup(format!("app {}: {error}", app.name)))?;
            let owner = Owner::of(app, &config);
            let sandbox = app.sandbox.as_ref();
            let operations =
                FetchOperations::new(upstream.clone(), account, entities.clone(), owner, sandbox);
            let operations = RateOperations::before(operations, opened.rate_limits.clone());
            let operations = PurgeOperations::before(operations, opened.page_cache.clone());
            let operations = tasks::operations(operations, tasks);
            let operations = StreamOperations::before(operations, streams, number);
            let operations: Rc<dyn Operations> =
                SnapshotOperations::before(operations, snapshots.clone());
            let starter = Rc::new(PoolStarter {
                operations,
                is_forwarding: !is_lead,
                slow: self.slow.clone(),
                memory: operations_memory,
                rings: self.rings.clone(),
                logs: app_logs,
            });
            starter.prepare(&opened.pool(), shard);
            opened.tasks.iter().for_each(|tasks| starter.prepare(&tasks.pool, Shard::only()));
            let drain_ms = config.drain_timeout_ms;
            if let Some(settings) = classic.filter(|_| app.pool.max_snapshots > 0) {
                let surroundings = Surroundings {
                    starter: starter.clone(),
                    log: opened.logs.error.clone(),
                    snapshots,
                    drain_timeout_ms: drain_ms,
                    threads: shared.snapshot_threads(&app.name).clone(),
                    index: self.share.index,
                };
                let (constants, max) = (app.php.params.clone(), app.pool.max_snapshots as usize);
                let classic = ClassicSnapshots::open(settings, constants, max, surroundings);
                opened.classic_snapshots = Some(classic);
            }
            if settings.has_snapshot() {
                let start = move |shard: Shard| starter.start(settings.clone(), shard);
                let pool = opened.pool();
                let seat = PoolSeat::renewed(pool, self.share.index, renewal, drain_ms, start);
                started.seats.borrow_mut().push(seat.clone());
                opened.seat = seat;
            }
            let before = predecessor.map_or(&[][..], |before| &before.apps);
            apps.push(Rc::new(opened.continue_from(before)));
        }
        started.commit();
        let logs = Rc::<Logs>::new(server_logs);
        let shares = (upstream, shared.upstreams.clone(), shared.access.clone());
        let mut generation = Generation::new(number, config, apps, logs, shares, entities);
        generation.rate_sharing = sharing;
        Ok((generation.traced(predecessor, self.share.count), sinks))
    }
}

impl GenerationBuilder {
    /// First those that an earlier gateway stored; after an upgrade, once that has left them.
    fn begin_tasks(&self, tasks: &Rc<Tasks>, predecessor: Option<&Generation>) {
        let find = |before: &Generation| {
            before.tasks().find(|before| before.app() == tasks.app()).cloned()
        };
        match (predecessor, &self.link) {
            (None, Some(_)) => tasks.hold(),
            _ => tasks.resume(predecessor.and_then(find).as_ref()),
        }
    }
}

/// The pools of a generation that is being opened; they are retired unless it is committed.
struct StartedPools {
    rings: Rc<Rings>,
    pools: RefCell<Vec<Rc<Pool>>>,
    seats: RefCell<Vec<Rc<PoolSeat>>>,
}

impl StartedPools {
    fn new(rings: Rc<Rings>) -> Self {
        Self { rings, pools: RefCell::default(), seats: RefCell::default() }
    }

    fn start(
        &self,
        settings: PoolSettings,
        shard: Shard,
        logs: &Logs,
    ) -> Result<Rc<Pool>, ServerError> {
        let (error, slow) = (logs.error.clone(), logs.slow.clone());
        let pool = Pool::start(settings, shard, error, slow, self.rings.clone());
        self.pools.borrow_mut().push(pool.clone());
        Ok(pool)
    }

    /// The generation is complete.
    fn commit(self) {
        self.pools.take();
        self.seats.take();
    }
}

impl Drop for StartedPools {
    fn drop(&mut self) {
        self.seats.take().iter().for_each(|seat| seat.retire(0));
        self.pools.take().iter().for_each(|pool| pool.retire(0));
    }
}

/// The process title of a named server's app.
fn title(name: &str, app: &outboard_config::App, config: &Config) -> String {
    if config.apps.len() == 1 { name.to_owned() } else { format!("{name}/{}", app.name) }
}

/// The tasks of an app.
fn start_tasks(
    app: &outboard_config::App,
    config: &outboard_config::Tasks,
    (pool, memory): (Rc<Pool>, Rc<Account>),
    entities: Option<&Entities>,
    logs: &Logs,
) -> Rc<Tasks> {
    let name = config.kv_namespace.as_deref();
    let namespace = name.and_then(|name| entities?.namespace(name).cloned());
    let journal = namespace.map(|namespace| TaskJournal::new(namespace, &app.name));
    Tasks::start(&app.name, config.clone(), (pool, memory), journal, logs.error.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_title_names_the_app_only_if_there_are_several() {
        let title_of = |apps: &str| {
            let config = Config::parse(apps, Path::new("/tmp/test.toml")).expect("a valid file");
            title("shop", &config.apps[0], &config)
        };
        assert_eq!(title_of("[app.a]\nroot = \"/tmp\"\n"), "shop");
        let two = "[app.a]\nroot = \"/tmp\"\nhosts = [\"a.test\"]\n[app.b]\nroot = \"/tmp\"\n";
        assert!(title_of(two).starts_with("shop/"));
    }
}
