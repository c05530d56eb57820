//! [`GenerationShards`]: what the generations of all threads share that were created from the same
//! configuration.
//!
//! Made by the lead for each configuration, and given to every thread.

use crate::access::SharedAccess;
use crate::app::SharedCaches;
use crate::classic_snapshots::SnapshotThreads;
use crate::generation::{self, Generation};
use crate::logs::Sinks;
use crate::upstreams::Upstreams;
use outboard_config::Config;
use outboard_log::SinkTarget;
use outboard_php_pool::freshness::Snapshots;
use outboard_php_pool::pool::PoolShards;
use outboard_php_pool::renewal::Renewal;
use outboard_upstream::{Account, ClientGroup};
use std::collections::HashMap;
use std::sync::Arc;

/// The thread that leads the others.
pub(crate) const LEAD: usize = 0;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct GenerationShards {
    /// By app.
    pools: HashMap<String, Arc<PoolShards>>,
    /// By app that may be debugged.
    debug_pools: HashMap<String, Arc<PoolShards>>,
    /// By app.
    snapshot_threads: HashMap<String, Arc<SnapshotThreads>>,
    snapshots: HashMap<String, (Arc<Snapshots>, Arc<Renewal>)>,
    /// By app; none on the lead's thread, which opens them.
    caches: HashMap<String, SharedCaches>,
    /// The limits of requests to other servers.
    pub(crate) upstream: Arc<ClientGroup>,
    /// The same of one app, by app.
    upstream_accounts: HashMap<String, Arc<Account>>,
    /// The groups of servers.
    pub(crate) upstreams: Arc<Upstreams>,
    /// Bans and rate limits.
    pub(crate) access: Arc<SharedAccess>,
    /// The logs that the lead has opened.
    pub(crate) logs: Vec<Arc<SinkTarget>>,
}

impl GenerationShards {
    /// For so many threads. The predecessor's requests to other servers count if the limits are the same.
    pub(crate) fn new(config: &Config, count: usize, predecessor: Option<&Generation>) -> Self {
        let names = || config.apps.iter().map(|app| app.name.clone());
        let account = |app: String| (app.clone(), generation::upstream_account(config, &app));
        let debugged = config.apps.iter().filter(|app| app.debug.is_on());
        Self {
            pools: names().map(|app| (app, PoolShards::new(count))).collect(),
            debug_pools: debugged.map(|app| (app.name.clone(), PoolShards::new(count))).collect(),
            snapshot_threads: names().map(|app| (app, SnapshotThreads::new(count))).collect(),
            snapshots: names().map(|app| (app, snapshots(count))).collect(),
            caches: HashMap::new(),
            upstream: generation::upstream_group(config, predecessor),
            upstreams: Upstreams::new(config, predecessor.map(|before| &*before.upstreams)),
            access: predecessor.map(|before| before.access.clone()).unwrap_or_default(),
            upstream_accounts: names().map(account).collect(),
            logs: Vec::new(),
        }
    }

    /// The lead has opened its generation: the others share its page caches and logs.
    pub(crate) fn share(&mut self, generation: &Generation, sinks: &Sinks) {
        self.logs = sinks.all().map(|sink| sink.target().clone()).collect();
        let apps = generation.apps.iter();
        self.caches = apps.map(|app| (app.config.name.clone(), app.shared_caches())).collect();
    }

    /// Those of an app.
    pub(crate) fn caches(&self, app: &str) -> Option<&SharedCaches> {
        self.caches.get(app)
    }

    /// The limits of an app's requests to other servers.
    pub(crate) fn upstream_account(&self, app: &str) -> &Arc<Account> {
        &self.upstream_accounts[app]
    }

    /// Pools that no thread has started never will be.
    pub(crate) fn give_up(&self) {
        self.pools.values().chain(self.debug_pools.values()).for_each(|pools| pools.give_up());
    }

    /// How the threads have the same snapshots of an app.
    pub(crate) fn snapshot_threads(&self, app: &str) -> &Arc<SnapshotThreads> {
        &self.snapshot_threads[app]
    }

    /// The snapshots of an app, and the renewal of that of its worker script.
    pub(crate) fn snapshots(&self, app: &str) -> &(Arc<Snapshots>, Arc<Renewal>) {
        &self.snapshots[app]
    }

    /// The pools of an app of the configuration.
    pub(crate) fn pool(&self, app: &str) -> &Arc<PoolShards> {
        &self.pools[app]
    }

    /// The pools of an app's workers with Xdebug, if it may be debugged.
    pub(crate) fn debug_pool(&self, app: &str) -> Option<&Arc<PoolShards>> {
        self.debug_pools.get(app)
    }
}

fn snapshots(threads: usize) -> (Arc<Snapshots>, Arc<Renewal>) {
    let (snapshots, renewal) = (Arc::<Snapshots>::default(), Renewal::new(threads));
    snapshots.add(renewal.freshness());
    (snapshots, renewal)
}
