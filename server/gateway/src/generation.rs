//! [`Generation`]: a configuration and everything that was started from it.
//!
//! Created at start and at each reload, while its predecessor still serves; a request uses the
//! generation in which it started. Invariant: every pool of a generation is ready before it becomes
//! active.

use crate::access::{RateSharing, SharedAccess};
use crate::app::App;
use crate::app_table::AppTable;
use crate::logs::Logs;
use crate::redirects::Redirects;
use crate::tracing::Tracer;
use crate::upstreams::Upstreams;
use outboard_config::{ConditionSet, Config, Redirect};
use outboard_http_server::HeaderBlock;
use outboard_log::AccessLog;
use outboard_operations::Entities;
use outboard_php_pool::pool::{Pool, StartError};
use outboard_php_pool::tasks::Tasks;
use outboard_reactor::BackgroundDrop;
use outboard_stream_server::StreamServer;
use outboard_upstream::{Account, Client, ClientGroup, Settings};
use rustix::process::{Resource, getrlimit};
use std::rc::Rc;
use std::sync::Arc;

/// A configuration at run time.
#[derive(Debug)]
pub(crate) struct Generation {
    /// Counts up from 1 with each reload.
    pub number: u32,
    /// The configuration that it was created from.
    pub config: BackgroundDrop<Config>,
    /// In the order of the configuration.
    pub(crate) apps: Vec<Rc<App>>,
    table: AppTable,
    redirects: Redirects,
    /// The server's own logs.
    pub(crate) logs: Rc<Logs>,
    /// The client for requests to other servers.
    pub(crate) upstream: Rc<Client>,
    /// The groups of servers.
    pub(crate) upstreams: Arc<Upstreams>,
    /// Bans and rate limits.
    pub(crate) access: Arc<SharedAccess>,
    /// The way to the server of rate limits that gateways share.
    pub(crate) rate_sharing: Option<Rc<RateSharing>>,
    /// The entity store.
    pub(crate) entities: Option<Rc<Entities>>,
    /// The traces of requests.
    pub(crate) tracer: Option<Rc<Tracer>>,
}

impl Generation {
    pub(crate) fn new(
        number: u32,
        config: Config,
        apps: Vec<Rc<App>>,
        logs: Rc<Logs>,
        (upstream, upstreams, access): (Rc<Client>, Arc<Upstreams>, Arc<SharedAccess>),
        entities: Option<Rc<Entities>>,
    ) -> Self {
        let table = AppTable::new(&apps);
        Self {
            number,
            redirects: Redirects::new(&config.redirects),
            config: BackgroundDrop::new(config),
            apps,
            table,
            logs,
            upstream,
            upstreams,
            access,
            rate_sharing: None,
            entities,
            tracer: None,
        }
    }

    /// The same with traces, if they are configured. The threads share the memory for spans.
    pub(crate) fn traced(mut self, predecessor: Option<&Self>, threads: usize) -> Self {
        let before = predecessor.and_then(|before| before.tracer.as_ref());
        let (client, log) = (&self.upstream, &self.logs.error);
        self.tracer = Tracer::open(&self.config, before, client, log, threads);
        if let Some(tracer) = &self.tracer {
            self.tasks().for_each(|tasks| tasks.trace_by(tracer.clone()));
        }
        self
    }

    /// Applies header rules to a response that belongs to no app: those of the only app, if there
    /// is just one, since clients see no difference.
    pub(crate) fn apply_rules(&self, headers: &mut HeaderBlock, status: u16) {
        if let [app] = &self.apps[..] {
            headers.apply(&app.config.headers, b"", status, ConditionSet::UNKNOWN);
        }
    }

    /// The app for a request.
    pub(crate) fn app(&self, host: &[u8], path: &[u8]) -> Option<Rc<App>> {
        self.table.find(host, path).cloned()
    }

    /// The redirect of a host, unless an app names it more closely.
    pub(crate) fn redirect(&self, host: &[u8], path: &[u8]) -> Option<&Redirect> {
        let app = || self.table.find(host, path).map(|app| &**app);
        self.redirects.find(host, app).map(|index| &self.config.redirects[index])
    }

    /// The raw connections of an app.
    pub(crate) fn streams(&self, app: &str) -> Option<Rc<StreamServer>> {
        self.apps.iter().find(|one| one.config.name == app)?.streams.clone()
    }

    /// Waits until all pools are ready.
    ///
    /// # Errors
    /// The first pool whose PHP does not start.
    pub(crate) async fn ready(&self) -> Result<(), StartError> {
        for pool in self.pools() {
            pool.ready().await?;
        }
        Ok(())
    }

    /// The pools of all apps.
    pub(crate) fn pools(&self) -> impl Iterator<Item = Rc<Pool>> {
        self.apps.iter().flat_map(|app| app.pools())
    }

    /// Retires the pools of all apps.
    pub(crate) fn retire_pools(&self, drain_timeout_ms: u64) {
        self.apps.iter().for_each(|app| app.retire_pools(drain_timeout_ms));
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

/// The group of the clients of all threads for a configuration: that of the predecessor, if its settings
/// are the same.
pub(crate) fn upstream_group(
    config: &Config,
    predecessor: Option<&Generation>,
) -> Arc<ClientGroup> {
    if let Some(predecessor) = predecessor.filter(|old| old.config.upstream == config.upstream) {
        return predecessor.upstream.group().clone();
    }
    let config = &config.upstream;
    let settings = Settings {
        requests_per_host: config.requests as usize,
        responses_per_host: config.responses as usize,
        waiting_per_host: config.queue_length as usize,
        wait_ms: config.queue_timeout_ms,
        connections: upstream_connections(config),
        idle_per_host: config.idle_connections as usize,
        idle_timeout_ms: config.idle_timeout_ms,
        ca_file: config.ca_file.clone(),
    };
    ClientGroup::new(settings)
}

/// This thread's client of a group: that of the predecessor with its connections, if it is of this group.
pub(crate) fn upstream_client(
    group: &Arc<ClientGroup>,
    predecessor: Option<&Generation>,
) -> Rc<Client> {
    let present = predecessor.map(|before| &before.upstream);
    let present = present.filter(|present| Arc::ptr_eq(present.group(), group));
    present.cloned().unwrap_or_else(|| Client::of(group))
}

/// The limit of connections to other servers: at most a quarter of the descriptors.
fn upstream_connections(config: &outboard_config::Upstream) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let limit = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).max(2);
    limit.min(config.connections as usize)
}

/// The account of one app, which may use half of the connections.
pub(crate) fn upstream_account(config: &Config, app: &str) -> Arc<Account> {
    let max_requests = config.upstream.requests_per_app as usize;
    let max_connections = upstream_connections(&config.upstream) / 2;
    Account::new(app, max_requests, max_connections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Site, in_loop};
    use std::path::Path;

    /// Four apps of one directory.
    const APPS: &str = "
        [app.any]
        root = \"www\"
        [app.wild]
        root = \"www\"
        hosts = [\"*.a.test\"]
        [app.exact]
        root = \"www\"
        hosts = [\"x.a.test\"]
        [app.below]
        root = \"www\"
        hosts = [\"x.a.test\"]
        path = \"/blog\"
    ";

    #[test]
    fn the_best_match_of_host_and_path_serves() {
        in_loop(async {
            let site = Site::with_config(&[], APPS);
            let generation = site.gateway.generation();
            let app = |host: &[u8], path: &[u8]| {
                generation.app(host, path).map(|app| app.config.name.clone())
            };
            assert_eq!(app(b"x.a.test", b"/").as_deref(), Some("exact"));
            assert_eq!(app(b"x.a.test", b"/blog/1").as_deref(), Some("below"));
            assert_eq!(app(b"x.a.test", b"/blogs").as_deref(), Some("exact"));
            assert_eq!(app(b"y.a.test", b"/blog").as_deref(), Some("wild"));
            assert_eq!(app(b"a.test", b"/").as_deref(), Some("any"));
            assert_eq!(app(b"", b"/").as_deref(), Some("any"));
            assert_eq!(app(b"\xff.a.test", b"/").as_deref(), Some("any"), "not UTF-8");
        });
    }

    #[test]
    fn header_rules_of_the_only_app_apply_to_all_responses() {
        in_loop(async {
            let rules = "[[app.site.headers]]\nset = { X-Own = \"1\" }\n";
            let lines = |site: &Site| {
                let mut headers = HeaderBlock::default();
                site.gateway.generation().apply_rules(&mut headers, 404);
                String::from_utf8(headers.bytes).unwrap()
            };
            assert_eq!(lines(&Site::new(&[], rules)), "X-Own: 1\r\n");
            let two = format!("{rules}[app.other]\nroot = \"www\"\nhosts = [\"b.test\"]\n");
            assert_eq!(lines(&Site::new(&[], &two)), "");
        });
    }

    #[test]
    fn a_successor_with_the_same_settings_takes_over_connections() {
        in_loop(async {
            let site = Site::new(&[], "");
            let before = site.gateway.generation();
            let text = |keys: &str| format!("{keys}[app.site]\nroot = \"/tmp\"\n");
            let client = |keys: &str| {
                let config = Config::parse(&text(keys), Path::new("/tmp/outboard.toml")).unwrap();
                upstream_client(&upstream_group(&config, Some(&before)), Some(&before))
            };
            assert!(Rc::ptr_eq(&client(""), &before.upstream));
            assert!(!Rc::ptr_eq(&client("[upstream]\nqueue_length = 7\n"), &before.upstream));
        });
    }

    #[test]
    fn connections_of_one_app_leave_half_for_others() {
        let config = Config::parse(
            "[upstream]\nconnections = 10\n[app.site]\nroot = \"/tmp\"\n",
            Path::new("/tmp/outboard.toml"),
        );
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(upstream_connections(&config.upstream), 10);
    }

    #[test]
    fn the_pools_are_those_of_all_apps() {
        in_loop(async {
            let site = Site::with_config(&[], APPS);
            let generation = site.gateway.generation();
            assert_eq!((generation.pools().count(), generation.tasks().count()), (4, 0));
        });
    }
}
