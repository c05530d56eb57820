//! [`App`]: an app at run time, with its configuration, files and pools.
//!
//! Created with a generation; its requests share it until the last one has ended.

mod common;
mod sendfile_roots;

use crate::access::RateLimits;
use crate::classic_snapshots::{self, ClassicSnapshots};
use crate::error_pages;
use crate::file_compressor::FileCompressor;
use crate::latencies::{Kind, Latencies};
use crate::logs::Logs;
use crate::maintenance::Maintenance;
use crate::mirror::Mirror;
use crate::request_memory::RequestMemory;
use crate::upstreams::Upstreams;
pub(crate) use common::{Caches, Common, SharedCaches};
use outboard_admin_api::status::SnapshotScript;
use outboard_buffer::{AppMemory, Spares};
use outboard_config::{self as config, ConditionSet};
use outboard_log::{Event, Level};
use outboard_page_cache::PageCache;
use outboard_php_pool::freshness::Snapshots;
use outboard_php_pool::pool::Pool;
use outboard_php_pool::renewal::seat::PoolSeat;
use outboard_php_pool::tasks::Tasks;
use outboard_reactor::BackgroundDrop;
use outboard_static_files::{CompressedFiles, Root, RootError, RootOptions};
use outboard_stream_server::StreamServer;
use outboard_upstream::{Account, Client};
use sendfile_roots::SendfileRoots;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// An app that requests are routed to.
#[derive(Debug)]
pub(crate) struct App {
    /// Its section of the configuration.
    pub config: BackgroundDrop<config::App>,
    /// The document root.
    pub(crate) files: Root,
    /// Its files that were compressed.
    compressed_files: Option<Arc<CompressedFiles>>,
    /// Compresses its files that have no compressed siblings.
    pub(crate) file_compressor: Rc<FileCompressor>,
    /// Directories for `X-Sendfile` and `X-Accel-Redirect`.
    pub(crate) sendfile: SendfileRoots,
    /// The tables of its rate limits.
    pub(crate) rate_limits: Rc<RateLimits>,
    /// Bodies of its own error pages, by status.
    pub(crate) error_pages: HashMap<u16, Rc<[u8]>>,
    /// Whether clients get a page in its place.
    pub(crate) maintenance: Option<Maintenance>,
    /// The place of its PHP workers' pool.
    pub(crate) seat: Rc<PoolSeat>,
    /// The place of its workers with Xdebug, if it may be debugged.
    pub(crate) debug_seat: Option<Rc<PoolSeat>>,
    /// Its snapshots.
    pub(crate) snapshots: Arc<Snapshots>,
    /// Scripts in classic mode that are booted once.
    pub(crate) classic_snapshots: Option<Rc<ClassicSnapshots>>,
    /// Memory of requests to PHP that have ended.
    pub(crate) spare_requests: Spares<RequestMemory>,
    /// Its background tasks, if it has task workers.
    pub(crate) tasks: Option<Rc<Tasks>>,
    /// Its raw connections, if its script starts a server.
    pub(crate) streams: Option<Rc<StreamServer>>,
    /// Its cached responses.
    pub(crate) page_cache: Option<Rc<PageCache>>,
    /// How long its requests took.
    pub(crate) latencies: Rc<Latencies>,
    /// Its logs.
    pub(crate) logs: Rc<Logs>,
    /// The client for requests to other servers.
    pub(crate) upstream: Rc<Client>,
    /// Its share of the requests and connections to other servers.
    pub(crate) upstream_account: Arc<Account>,
    /// The groups of servers that its routes name.
    pub(crate) upstreams: Arc<Upstreams>,
    /// The copies of its requests, by route.
    pub(crate) mirrors: Vec<Option<Mirror>>,
    /// Its memory accounts.
    pub(crate) memory: AppMemory,
    /// `SCRIPT_FILENAME` of every request in worker mode: the root's `index.php` if there is one,
    /// so that frameworks find their base path by it, and the worker's script otherwise.
    pub(crate) worker_script: Option<Box<[u8]>>,
    /// Whether connections may go to its workers.
    pub(crate) has_direct: bool,
}

impl App {
    /// The pool of its requests, for now: a changed snapshot replaces it.
    pub(crate) fn pool(&self) -> Rc<Pool> {
        self.seat.pool()
    }

    /// The pools of its requests and of its tasks.
    pub(crate) fn pools(&self) -> impl Iterator<Item = Rc<Pool>> {
        let tasks = self.tasks.iter().flat_map(|tasks| tasks.pools().cloned());
        let debugged = self.debug_seat.as_ref().map(|seat| seat.pool());
        [self.pool()].into_iter().chain(tasks).chain(debugged)
    }

    /// Retires its pools: a successor has taken over, or the server stops.
    pub(crate) fn retire_pools(&self, drain_timeout_ms: u64) {
        self.seat.retire(drain_timeout_ms);
        self.debug_seat.iter().for_each(|seat| seat.retire(drain_timeout_ms));
        let of_tasks = self.tasks.iter().flat_map(|tasks| tasks.pools());
        of_tasks.for_each(|pool| pool.retire(drain_timeout_ms));
        self.classic_snapshots.iter().for_each(|snapshots| snapshots.retire(drain_timeout_ms));
    }

    /// The place of the pool for a request with this frame.
    pub(crate) fn seat_for(&self, frame: &[u8]) -> Rc<PoolSeat> {
        let snapshots = self.classic_snapshots.as_ref();
        let snapshot = snapshots.and_then(|all| all.seat_for(&self.pool(), frame));
        snapshot.unwrap_or_else(|| self.seat.clone())
    }

    /// The scripts that take a snapshot.
    pub(crate) fn snapshot_status(&self) -> Vec<SnapshotScript> {
        let classic = self.classic_snapshots.as_ref();
        let mut scripts = classic.map_or_else(Vec::new, |snapshots| snapshots.status());
        let name = self.worker_script.as_deref().unwrap_or_default();
        scripts.extend(self.pool().request_reads().filter(|_| self.pool().takes_snapshots()).map(
            |reads| SnapshotScript {
                app: self.config.name.clone(),
                script: String::from_utf8_lossy(name).into_owned(),
                snapshots: 1,
                refused_because: None,
                reads: classic_snapshots::api_reads(&reads),
            },
        ));
        scripts
    }

    /// Continues to count where an app of an earlier generation ended.
    pub(crate) fn continue_from(mut self, predecessors: &[Rc<Self>]) -> Self {
        let is_it = |before: &&Rc<Self>| before.config.name == self.config.name;
        if let Some(before) = predecessors.iter().find(is_it) {
            self.latencies = before.latencies.clone();
        }
        self
    }

    /// What its scripts are.
    pub(crate) fn kind(&self) -> Kind {
        if self.worker_script.is_some() { Kind::Worker } else { Kind::Script }
    }

    /// The path of the script, below the root, in worker mode.
    pub(crate) const WORKER_NAME: &[u8] = b"/index.php";

    /// Opens the app's directories.
    ///
    /// # Errors
    /// The directory that cannot be opened.
    pub(crate) fn open(
        config: config::App,
        pool: Rc<Pool>,
        (tasks, streams): (Option<Rc<Tasks>>, Option<Rc<StreamServer>>),
        logs: Rc<Logs>,
        (upstream, upstream_account): (Rc<Client>, Arc<Account>),
        memory: AppMemory,
        Common { caches, rate_limits, upstreams, snapshots }: Common,
    ) -> Result<Self, RootError> {
        let compressed_files = compressed_files(&config, &caches);
        let options = config.static_files.clone();
        let options = RootOptions {
            compressed_files: compressed_files.clone(),
            is_pinned: runs_until_reload(&config),
            ..options
        };
        let users = &options.users.clone();
        let files = Root::open(&config.root, options)?;
        let sendfile = SendfileRoots::open(&config, users)?;
        let proxies = config.proxies.iter();
        let mirrors = proxies.map(|route| route.mirror.as_ref().map(Mirror::new)).collect();
        // Of all threads one reports it.
        let is_lead = matches!(caches, Caches::Own { .. });
        let report = |text: &str| {
            if is_lead {
                log_error(&logs, &config.name, text);
            }
        };
        let error_pages = error_pages::read(&config.error_pages, users, report);
        let maintenance = config.maintenance.as_ref();
        let maintenance = maintenance.map(|own| Maintenance::open(own, users, report));
        let worker_script = match &config.mode {
            config::Mode::Classic => None,
            config::Mode::Worker(worker) => Some(worker_script(worker, &config.root)),
        };
        let page_cache = page_cache(&config, caches, &upstream, &logs);
        Ok(Self {
            has_direct: config.has_direct(),
            config: BackgroundDrop::new(config),
            files,
            compressed_files,
            file_compressor: Rc::default(),
            sendfile,
            maintenance,
            rate_limits,
            upstreams,
            mirrors,
            error_pages,
            seat: PoolSeat::fixed(pool),
            debug_seat: None,
            snapshots,
            classic_snapshots: None,
            spare_requests: Spares::default(),
            tasks,
            streams,
            page_cache,
            latencies: Rc::default(),
            logs,
            upstream,
            upstream_account,
            memory,
            worker_script,
        })
    }

    /// What the other threads share of it.
    pub(crate) fn shared_caches(&self) -> SharedCaches {
        SharedCaches {
            pages: self.page_cache.as_ref().map(|cache| cache.pages().clone()),
            compressed_files: self.compressed_files.clone(),
        }
    }

    /// Writes to the app's error log about one of its requests.
    pub(crate) fn log_text(&self, level: Level, request_id: u64, text: &str) {
        let event = Event {
            app: Some(&self.config.name),
            request: Some(request_id),
            text,
            ..Event::default()
        };
        self.logs.error.write(level, event);
    }

    /// `DOCUMENT_ROOT`: without links, so that a script, what it includes and its assets are of one release.
    pub(crate) fn document_root(&self) -> Arc<Path> {
        self.files.real_path()
    }

    /// The path below the app's prefix; it starts with a slash.
    pub(crate) fn below_prefix<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        below_prefix(&self.config, path)
    }

    /// Whether a header rule with a condition applies to responses for a path below the prefix.
    pub(crate) fn has_conditional_header(&self, path: &[u8], conditions: ConditionSet) -> bool {
        let mut rules = self.config.headers.iter().filter(|rule| !rule.requirement.is_empty());
        rules.any(|rule| rule.applies(path, conditions))
    }

    /// Whether the app serves `path`.
    pub(crate) fn has_path(&self, path: &[u8]) -> bool {
        match self.config.path_prefix.as_str() {
            "/" => true,
            prefix => path
                .strip_prefix(prefix.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")),
        }
    }
}

/// The path below the app's prefix; it starts with a slash.
pub(crate) fn below_prefix<'p>(app: &config::App, path: &'p [u8]) -> &'p [u8] {
    match app.path_prefix.as_str() {
        "/" => path,
        prefix => match &path[prefix.len()..] {
            b"" => b"/",
            below => below,
        },
    }
}

fn log_error(logs: &Logs, app: &str, text: &str) {
    logs.error.write(Level::Error, Event { app: Some(app), text, ..Event::default() });
}

/// Whether PHP runs the release that it has booted until a reload. In classic mode every request finds its script,
/// and a snapshot is retired when a link of its files is switched.
fn runs_until_reload(app: &config::App) -> bool {
    matches!(&app.mode, config::Mode::Worker(worker) if worker.isolation == config::Isolation::Reset)
}

fn worker_script(worker: &config::Worker, root: &Path) -> Box<[u8]> {
    let index = root.join("index.php");
    let script = if index.is_file() { &index } else { &worker.script };
    script.as_os_str().as_encoded_bytes().into()
}

fn compressed_files(config: &config::App, caches: &Caches) -> Option<Arc<CompressedFiles>> {
    match caches {
        Caches::Own { .. } => {
            let keep = |max_bytes| Arc::new(CompressedFiles::new(max_bytes));
            config.compressed_files_bytes.map(keep)
        }
        Caches::OfLead(shared) => shared.compressed_files.clone(),
    }
}

/// The page cache, if the app has one; without its directory on disk there is none.
fn page_cache(
    config: &config::App,
    caches: Caches,
    upstream: &Rc<Client>,
    logs: &Logs,
) -> Option<Rc<PageCache>> {
    let opened = match caches {
        Caches::Own { is_first } => PageCache::open(config, is_first, upstream, &logs.error),
        Caches::OfLead(SharedCaches { pages, .. }) => {
            Ok(pages.map(|pages| PageCache::join(pages, upstream, &logs.error)))
        }
    };
    opened.unwrap_or_else(|error| {
        let text = format!("no page cache: its directory on disk cannot be used: {error}");
        log_error(logs, &config.name, &text);
        None
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{Site, in_loop};

    #[test]
    fn a_prefix_is_a_directory() {
        in_loop(async {
            let site = Site::new(&[], "path = \"/blog\"");
            let app = site.app();
            assert!(app.has_path(b"/blog") && app.has_path(b"/blog/") && app.has_path(b"/blog/a"));
            assert!(!app.has_path(b"/") && !app.has_path(b"/blogs") && !app.has_path(b"/a/blog"));
            assert_eq!(app.below_prefix(b"/blog"), b"/");
            assert_eq!(app.below_prefix(b"/blog/a"), b"/a");
        });
    }
}
