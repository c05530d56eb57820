//! [`Generation`]: a configuration and everything that was started from it.
//!
//! Created at start and at each reload, while its predecessor still serves; a request uses the
//! generation in which it started. Invariant: every pool of a generation is ready before it becomes
//! active.

use crate::app::App;
use crate::background_drop::BackgroundDrop;
use crate::entities::Entities;
use crate::logs::Logs;
use outboard_config::Config;
use outboard_http_server::HeaderBlock;
use outboard_log::AccessLog;
use outboard_php_pool::pool::Pool;
use outboard_php_pool::tasks::Tasks;
use outboard_upstream::{Account, Client, Settings};
use rustix::process::{Resource, getrlimit};
use std::rc::Rc;

/// A configuration at run time.
#[derive(Debug)]
pub(crate) struct Generation {
    /// Counts up from 1 with each reload.
    pub number: u32,
    /// The configuration that it was created from.
    pub config: BackgroundDrop<Config>,
    /// Best match first: exact hosts before wildcards before any, longer prefixes before shorter.
    pub(crate) apps: Vec<Rc<App>>,
    /// The server's own logs.
    pub(crate) logs: Rc<Logs>,
    /// The client for requests to other servers.
    pub(crate) upstream: Rc<Client>,
    /// The entity store.
    pub(crate) entities: Option<Rc<Entities>>,
}

impl Generation {
    /// Sorts the apps into the order in which requests are matched.
    pub(crate) fn new(
        number: u32,
        config: Config,
        mut apps: Vec<Rc<App>>,
        logs: Rc<Logs>,
        upstream: Rc<Client>,
        entities: Option<Rc<Entities>>,
    ) -> Self {
        apps.sort_by_key(|app| std::cmp::Reverse((app.host_rank(), app.config.path_prefix.len())));
        let config = BackgroundDrop::new(config);
        Self { number, config, apps, logs, upstream, entities }
    }

    /// Applies header rules to a response that belongs to no app: those of the only app, if there
    /// is just one, since clients see no difference.
    pub(crate) fn apply_rules(&self, headers: &mut HeaderBlock) {
        if let [app] = &self.apps[..] {
            headers.apply(&app.config.headers, b"");
        }
    }

    /// The app for a request.
    pub(crate) fn app(&self, host: &[u8], path: &[u8]) -> Option<Rc<App>> {
        // A host that is not UTF-8 matches only apps without host names.
        let host = std::str::from_utf8(host).unwrap_or_default();
        self.apps.iter().find(|app| app.has_host(host) && app.has_path(path)).cloned()
    }

    /// The pools of all apps.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &Rc<Pool>> {
        self.apps.iter().flat_map(|app| app.pools())
    }

    /// The background tasks of all apps.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Rc<Tasks>> {
        self.apps.iter().filter_map(|app| app.tasks.as_ref())
    }

    /// Moves waiting tasks to the same app of the successor, if it has task workers there.
    pub(crate) fn hand_over_tasks(&self, successor: &Self) {
        for tasks in self.tasks() {
            match successor.tasks().find(|next| next.app() == tasks.app()) {
                Some(next) => tasks.hand_over(next),
                None => tasks.stop(),
            }
        }
    }

    /// The access log of an app, or the server's.
    pub(crate) fn access_log<'a>(&'a self, app: Option<&'a App>) -> &'a AccessLog {
        app.map_or(&self.logs.access, |app| &app.logs.access)
    }
}

/// A client for a configuration: that of the predecessor with its connections, if its settings are
/// the same.
pub(crate) fn upstream_client(config: &Config, predecessor: Option<&Generation>) -> Rc<Client> {
    if let Some(predecessor) = predecessor.filter(|old| old.config.upstream == config.upstream) {
        return predecessor.upstream.clone();
    }
    let config = &config.upstream;
    Client::new(Settings {
        requests_per_host: config.requests as usize,
        responses_per_host: config.responses as usize,
        waiting_per_host: config.queue_length as usize,
        wait_ms: config.queue_timeout_ms,
        connections: upstream_connections(config),
        idle_per_host: config.idle_connections as usize,
        idle_timeout_ms: config.idle_timeout_ms,
        ca_file: config.ca_file.clone(),
    })
}

/// The limit of connections to other servers: at most a quarter of the descriptors.
fn upstream_connections(config: &outboard_config::Upstream) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let limit = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).max(2);
    limit.min(config.connections as usize)
}

/// The account of one app, which may use half of the connections.
pub(crate) fn upstream_account(config: &Config, app: &str) -> Rc<Account> {
    let max_requests = config.upstream.requests_per_app as usize;
    Account::new(app, max_requests, upstream_connections(&config.upstream) / 2)
}
