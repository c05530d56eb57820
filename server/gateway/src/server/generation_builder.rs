//! [`GenerationBuilder`]: opens the generations of a server.
//!
//! Called by the server at start and at each reload. Invariants: a generation that cannot be opened
//! leaves no process behind; other tasks run between any two of its apps.

use crate::access::{RateLimits, RateSharing};
use crate::app::{App, Caches, Common};
use crate::app_operations::AppOperations;
use crate::classic_snapshots::{ClassicSnapshots, Surroundings};
use crate::gateway::SharedByThreads;
use crate::generation::{self, Generation};
use crate::logs::{Logs, Sinks};
use crate::pool_starter::PoolStarter;
use crate::privileges::Privileges;
use crate::server::generation_shards::{GenerationShards, LEAD};
use crate::server::started_pools::StartedPools;
use crate::server_error::ServerError;
use crate::streams::{self, StreamCalls};
use crate::upgrade_link::UpgradeLink;
use outboard_buffer::{Account, Memory};
use outboard_config::{self as config, Config, Mode};
use outboard_operations::{Entities, FetchOperations, Owner};
use outboard_php_pool::pool::operations::Operations;
use outboard_php_pool::pool::{PoolSettings, Shard};
use outboard_php_pool::renewal::seat::PoolSeat;
use outboard_php_pool::tasks::Tasks;
use outboard_php_pool::tasks::journal::TaskJournal;
use outboard_php_pool::{Recent, Rings};
use outboard_reactor::{Share, unbound, yield_now};
use outboard_stream_server::StreamServer;
use outboard_upstream::Client;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// The settings that all generations share.
pub(crate) struct GenerationBuilder {
    pub(crate) name: Option<String>,
    pub(crate) host_binary: PathBuf,
    pub(crate) memory: Rc<Memory>,
    /// What the threads have in common.
    pub(crate) server: Arc<SharedByThreads>,
    pub(crate) rings: Rc<Rings>,
    /// The latest slow requests and errors of this thread.
    pub(crate) recent: Rc<Recent>,
    pub(crate) privileges: Arc<Privileges>,
    /// The place of this thread; the first is the lead.
    pub(crate) share: Share,
    /// The way to the server that this one takes over from, on the lead.
    pub(crate) link: Option<Rc<UpgradeLink>>,
}

/// A generation that is being opened, before its apps.
struct Opening<'a> {
    number: u32,
    config: &'a Config,
    predecessor: Option<&'a Generation>,
    shared: &'a GenerationShards,
    /// The client for requests to other servers.
    upstream: Rc<Client>,
    entities: Option<Rc<Entities>>,
    rate_sharing: Option<Rc<RateSharing>>,
    started: StartedPools,
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
        let mut sinks = Sinks::new(self.privileges.opener(), &shared.logs);
        let cannot_log = |error: io::Error| {
            ServerError::setup_because(format!("cannot open a log: {error}"), error)
        };
        let logs = Rc::new(sinks.open_logs(&config.log).await.map_err(cannot_log)?);
        let upstream = generation::upstream_client(&shared.upstream, predecessor);
        let sharing = predecessor.and_then(|before| before.rate_sharing.as_ref());
        let opening = Opening {
            number,
            config: &config,
            predecessor,
            shared,
            entities: self.open_entities(&config, predecessor, &logs)?,
            rate_sharing: shared.access.rate_sharing(&config, sharing, &upstream, &logs.error),
            upstream,
            started: StartedPools::new(self.rings.clone()),
        };
        let mut apps = Vec::new();
        for app in &config.apps {
            yield_now().await;
            let logs = Rc::new(sinks.open_logs(&app.log).await.map_err(cannot_log)?);
            apps.push(Rc::new(self.open_app(&opening, app, logs)?));
        }
        let Opening { upstream, entities, rate_sharing, started, .. } = opening;
        started.commit();
        let shares = (upstream, shared.upstreams.clone(), shared.access.clone());
        let mut generation = Generation::new(number, config, apps, logs, shares, entities);
        generation.rate_sharing = rate_sharing;
        Ok((generation.traced(predecessor, self.share.count), sinks))
    }

    fn is_lead(&self) -> bool {
        self.share.index == LEAD
    }

    /// The entity store, which the lead has.
    fn open_entities(
        &self,
        config: &Config,
        predecessor: Option<&Generation>,
        logs: &Logs,
    ) -> Result<Option<Rc<Entities>>, ServerError> {
        if !self.is_lead() {
            return Ok(Entities::without_store(config));
        }
        let before = predecessor.and_then(|before| before.entities.as_ref());
        let elsewhere = self.link.as_ref().map(|link| link.elsewhere());
        unbound(|| Entities::open(config, before, elsewhere, &logs.error))
            .map_err(ServerError::setup)
    }

    fn open_app(
        &self,
        opening: &Opening<'_>,
        app: &config::App,
        logs: Rc<Logs>,
    ) -> Result<App, ServerError> {
        let Opening { shared, predecessor, started, .. } = opening;
        let mut settings =
            PoolSettings::of(app, &self.host_binary, self.privileges.spawner.as_ref())
                .map_err(ServerError::setup)?;
        if let Some(name) = &self.name {
            settings.host.app = title(name, app, opening.config);
        }
        let memory = self.memory.of_app(&app.name);
        let operations_memory = memory.operations.clone();
        let tasks = self.start_tasks(opening, app, &settings, (&operations_memory, &logs))?;
        // Development mode watches all files itself.
        let lists = opening.config.development.is_none();
        settings.host.worker.iter_mut().for_each(|worker| worker.lists_files &= lists);
        let shard = shared.pool(&app.name).place(self.share.index);
        let pool = started.start(settings.clone(), shard.clone(), &logs);
        let streams = streams::server_for(app, *predecessor, || {
            StreamServer::new(&app.name, &operations_memory, logs.error.clone())
        });
        let own = Caches::Own { is_first: predecessor.is_none() };
        let common = Common {
            caches: shared.caches(&app.name).cloned().map_or(own, Caches::OfLead),
            rate_limits: RateLimits::open(app, &shared.access, opening.rate_sharing.as_ref()),
            upstreams: shared.upstreams.clone(),
            snapshots: shared.snapshots(&app.name).0.clone(),
        };
        let client = (opening.upstream.clone(), shared.upstream_account(&app.name).clone());
        // A page cache has threads.
        let opened = unbound(|| {
            App::open(app.clone(), pool, (tasks, streams), logs.clone(), client, memory, common)
        });
        let opened =
            opened.map_err(|error| ServerError::setup(format!("app {}: {error}", app.name)))?;
        let starter = Rc::new(PoolStarter {
            operations: operations(opening, &opened),
            is_forwarding: !self.is_lead(),
            recent: self.recent.clone(),
            memory: operations_memory,
            rings: self.rings.clone(),
            logs,
        });
        starter.prepare(&opened.pool(), shard);
        let of_tasks = opened.tasks.iter().flat_map(|tasks| tasks.pools());
        of_tasks.for_each(|pool| starter.prepare(pool, Shard::only()));
        let opened = self.with_debugger(opening, opened, &settings, &starter);
        let opened = self.with_snapshots(opening, opened, settings, starter);
        Ok(opened.continue_from(predecessor.map_or(&[][..], |before| &before.apps)))
    }

    /// Starts the pool of an app's task workers, which the lead has.
    fn start_tasks(
        &self,
        opening: &Opening<'_>,
        app: &config::App,
        settings: &PoolSettings,
        (memory, logs): (&Rc<Account>, &Logs),
    ) -> Result<Option<Rc<Tasks>>, ServerError> {
        let Some(config) = app.tasks.as_ref().filter(|_| self.is_lead()) else { return Ok(None) };
        let settings = settings.of_tasks(app, config).map_err(ServerError::setup)?;
        let debug_settings = settings.of_debugged(app.debug.workers);
        let pool = opening.started.start(settings, Shard::only(), logs);
        let name = config.kv_namespace.as_deref();
        let namespace = name.and_then(|name| opening.entities.as_ref()?.namespace(name).cloned());
        let journal = namespace.map(|namespace| TaskJournal::new(namespace, &app.name));
        let debug_pool =
            app.debug.is_on().then(|| opening.started.start(debug_settings, Shard::only(), logs));
        let own = (pool, debug_pool, memory.clone());
        let tasks = Tasks::start(&app.name, config.clone(), own, journal, logs.error.clone());
        self.begin_tasks(&tasks, opening.predecessor);
        Ok(Some(tasks))
    }

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

    /// The pool of workers with Xdebug.
    fn with_debugger(
        &self,
        opening: &Opening<'_>,
        mut app: App,
        settings: &PoolSettings,
        starter: &PoolStarter,
    ) -> App {
        let Some(shards) = opening.shared.debug_pool(&app.config.name) else { return app };
        let shard = shards.place(self.share.index);
        let settings = settings.of_debugged(app.config.debug.workers);
        let pool = opening.started.start(settings, shard.clone(), &app.logs);
        starter.prepare(&pool, shard);
        app.debug_seat = Some(PoolSeat::fixed(pool));
        app
    }

    /// The pools that snapshots replace or add.
    fn with_snapshots(
        &self,
        opening: &Opening<'_>,
        mut app: App,
        settings: PoolSettings,
        starter: Rc<PoolStarter>,
    ) -> App {
        let (name, shared) = (&app.config.name, opening.shared);
        let drain_timeout_ms = opening.config.drain_timeout_ms;
        let (snapshots, renewal) = shared.snapshots(name).clone();
        // Their workers would never rest.
        let max = if settings.sleeps() { 0 } else { app.config.pool.max_snapshots as usize };
        if matches!(app.config.mode, Mode::Classic) && max > 0 {
            let surroundings = Surroundings {
                starter: starter.clone(),
                log: app.logs.error.clone(),
                snapshots,
                drain_timeout_ms,
                threads: shared.snapshot_threads(name).clone(),
                index: self.share.index,
            };
            let constants = app.config.php.params.clone();
            let classic = ClassicSnapshots::open(settings.clone(), constants, max, surroundings);
            app.classic_snapshots = Some(classic);
        }
        if settings.has_snapshot() {
            let start = move |shard: Shard| starter.start(settings.clone(), shard);
            let (pool, index) = (app.pool(), self.share.index);
            let seat = PoolSeat::renewed(pool, index, renewal, drain_timeout_ms, start);
            opening.started.seats.borrow_mut().push(seat.clone());
            app.seat = seat;
        }
        app
    }
}

/// What the workers of an app may request.
fn operations(opening: &Opening<'_>, app: &App) -> Rc<dyn Operations> {
    let owner = Owner::of(&app.config, opening.config);
    Rc::new(AppOperations {
        fetches: FetchOperations::new(
            app.upstream.clone(),
            app.upstream_account.clone(),
            opening.entities.clone(),
            owner,
            app.config.sandbox.as_ref(),
        ),
        rate_limits: app.rate_limits.clone(),
        page_cache: app.page_cache.clone(),
        tasks: app.tasks.clone(),
        streams: app.streams.clone().map(|server| StreamCalls::new(server, opening.number)),
        snapshots: app.snapshots.clone(),
    })
}

/// The process title of a named server's app.
fn title(name: &str, app: &outboard_config::App, config: &Config) -> String {
    if config.apps.len() == 1 { name.to_owned() } else { format!("{name}/{}", app.name) }
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
