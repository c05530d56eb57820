//! The validated configuration as the rest of the server uses it.
//!
//! Every default is applied, every path is absolute, every unit is in the name, and contradictions
//! have been rejected. One file per section; each converts its part of [`crate::raw`] into its part
//! of [`Config`] and reports errors to the [`Context`].

mod access;
mod acme;
mod app;
mod authentication;
mod compose;
mod condition;
mod context;
mod cors;
mod countries;
mod dashboard;
mod debug;
mod deny;
mod direct;
mod entities;
mod environment;
mod forwarding;
mod headers;
mod listen;
mod log;
mod maintenance;
mod networks;
mod page_cache;
mod page_cache_shared;
mod peers;
mod php;
mod pool;
mod process;
mod proxy;
mod rate_limit;
mod rate_sharing;
mod redirect;
mod rewrite;
mod sandbox;
mod scripts;
mod tasks;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tracing;
mod upstream;
mod upstream_health;
mod worker;

pub use crate::raw::{
    AcceptContext, AccessLog, Balance, Breaker, Certificate, Challenge, ConditionSet, ControlGroup,
    Development, Durability, EntityMode, EntityNamespace, EntityRedis, Environment, ErrorLevel,
    ErrorLog, ExportCompression, ExternalAccount, HashKey, HealthCheck, Io, Isolation, Limits, Log,
    LogRotation, LogTarget, Mirror, Overload, Php, Pool, Process, Proxy, ProxyTarget, Requirement,
    RewriteWhen, Rlimits, SameSite, SendProxy, Sendfile, SlowLog, StatusSet, Sticky, StopSignal,
    Tasks, Tracing, Upstream, UpstreamGroup, UpstreamServer, Worker,
};
pub use crate::scalar::Secret;
pub use access::{Access, AccessRule, Admission, RuleSet, counted_as};
pub use acme::{Acme, Authority, is_local_name};
pub use app::App;
pub use authentication::{AuthService, BasicAuth, ForwardAuth};
pub use compose::{Compose, FetchSource, OnError, Part, PartSource, Prefetch};
pub use condition::{Condition, Texts};
pub(crate) use context::{Context, Networks};
pub use cors::Cors;
pub use countries::Countries;
pub use dashboard::Dashboard;
pub use debug::Debug;
pub use deny::Deny;
pub use entities::{Entities, EntityEngine, EntityStorage};
pub use forwarding::Forwarding;
pub use headers::HeaderRule;
pub use listen::{ClientAuthorities, ListenAddress, Listener, ProgramPort, Protocol};
pub use maintenance::Maintenance;
pub use page_cache::{PRESET_NAMES, PageCache, PageCacheDisk};
pub use page_cache_shared::PageCacheShared;
pub use peers::Peers;
pub use process::DEFAULT_PATH;
pub use rate_limit::{RateKey, RateLimit};
pub use redirect::Redirect;
pub use rewrite::{Replacement, ReplacementPart, Rewrite, RewriteAction, Rewritten};
pub use sandbox::Sandbox;
pub use worker::Mode;

use crate::diagnostic::Diagnostics;
use crate::raw;
use crate::scalar::{Count, MetricsAt};
use crate::settings::{self, Setting, Unusable};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration file, or the directory that is served without one; absolute.
    pub file: PathBuf,
    /// The included files, and the files that values are read from; absolute.
    pub files: Vec<PathBuf>,
    /// Every key with its value and its origin; it has no secret.
    pub settings: Arc<Vec<Setting>>,
    /// Settings of development mode; `None` in production.
    pub development: Option<Development>,
    /// The listeners, in the order of the file; at least one.
    pub listeners: Vec<Listener>,
    /// How certificates are obtained; `None` if no listener needs it.
    pub acme: Option<Acme>,
    /// The applications, by name; at least one.
    pub apps: Vec<App>,
    /// Hosts whose requests are redirected to another host.
    pub redirects: Vec<Redirect>,
    /// The countries of clients; `None`: no condition asks for them.
    pub countries: Option<Countries>,
    /// Limits that apply before the app of a request is known.
    pub limits: Limits,
    /// The file of the bans; `None`: they end with the server.
    pub bans_file: Option<PathBuf>,
    /// The server through which gateways share rate limits; `None`: each limits by itself.
    pub rate_sharing: Option<PageCacheShared>,
    /// Status and metrics.
    pub admin: Admin,
    /// The server's own logs.
    pub log: Log,
    /// Traces of requests; `None` if there are none.
    pub tracing: Option<Tracing>,
    /// Temporary files and sockets of the gateway.
    pub io: Io,
    /// Requests to other servers.
    pub upstream: Upstream,
    /// Servers that share requests, by name.
    pub upstreams: Vec<UpstreamGroup>,
    /// The entity store; `None` if it is disabled.
    pub entities: Option<Entities>,
    /// Whether error responses state their reason.
    pub names_reasons: bool,
    /// Default user that PHP runs as.
    pub user: Option<String>,
    /// User that the gateway switches to when root starts it.
    pub gateway_user: Option<String>,
    /// Default group that PHP runs as.
    pub group: Option<String>,
    /// Threads of the gateway, at least one.
    pub threads: Count,
    /// Maximum time for running requests to finish after a reload or a stop.
    pub drain_timeout_ms: u64,
    /// Maximum time for WebSocket connections after an upgrade.
    pub websocket_drain_timeout_ms: u64,
}

/// Status and metrics.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    /// The admin socket; `None`: the command line chooses one.
    pub socket: Option<PathBuf>,
    /// Group whose members may use the socket, in addition to root and the server's own user.
    pub group: Option<String>,
    /// Where Prometheus metrics are served; `None`: nowhere.
    pub metrics: Option<Metrics>,
    /// The dashboard on an address; `None`: on the admin socket only.
    pub dashboard: Option<Dashboard>,
}

/// Where Prometheus metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// This URL path on every listener.
    Path(String),
    /// A separate address.
    Listen(ListenAddress),
}

impl Config {
    /// Values that are valid, but not on this machine, as errors at their places.
    ///
    /// # Errors
    /// There is one.
    pub fn refuse(&self, path: &Path, list: Vec<Unusable>) -> Result<(), Diagnostics> {
        settings::unusable(&self.settings, path, list)
    }

    /// Records in the settings that the command line has replaced a value.
    pub fn set_by_command_line(&mut self, key: &str, value: &str) {
        settings::replace(Arc::make_mut(&mut self.settings), key, value);
    }

    /// What the server is for.
    pub fn environment(&self) -> Environment {
        match self.development {
            Some(_) => Environment::Development,
            None => Environment::Production,
        }
    }
}

/// Turns a whole file. Errors are left at the context; with any there, the result is not used.
pub(crate) fn file(raw: &raw::File, context: &mut Context<'_>) -> Config {
    context.networks = networks::networks(&raw.networks, context);
    let log = log::log(&raw.log, &["log"], context);
    let listeners = listen::listeners(raw, context);
    let mut apps = app::apps(raw, context);
    let redirects = redirect::redirects(raw, &listeners, &apps, context);
    let acme = acme::acme(raw, &listeners, (&apps, &redirects), context);
    listen::check_client_certificates(&listeners, &apps, context);
    let is_development = raw.environment == Environment::Development;
    let development =
        is_development.then(|| environment::development(&raw.development, &apps, context));
    if is_development {
        apps.iter_mut().for_each(environment::develop);
    }
    let upstreams = upstream::groups(raw.upstream.named.clone(), context);
    upstream::check_routes(&apps, &upstreams, context);
    let entities = entities::entities(&raw.kv, raw.app.len(), context);
    entities::check_owners(raw, entities.as_ref(), context);
    entities::check_namespaces(&apps, entities.as_ref(), context);
    let ca = raw.upstream.ca_file.as_ref();
    let rate_sharing = rate_sharing::sharing(raw.rate_sharing.as_ref(), &apps, context);
    Config {
        file: context.file.to_owned(),
        files: Vec::new(),
        settings: Arc::default(),
        development,
        listeners,
        acme,
        apps,
        redirects,
        countries: countries::countries(raw.country_database.as_deref(), context),
        limits: raw.limits.checked(),
        rate_sharing,
        bans_file: raw.bans.file.as_ref().map(|file| context.absolute(file)),
        admin: admin(&raw.admin, context),
        log,
        tracing: tracing::tracing(raw.tracing.clone(), context),
        io: Io {
            temp_dir: context.directory(&["io", "temp_dir"], &raw.io.temp_dir),
            ..raw.io.clone()
        },
        upstream: Upstream {
            ca_file: ca.map(|path| context.file(&["upstream", "ca"], path)),
            named: BTreeMap::new(),
            ..raw.upstream.clone()
        },
        upstreams,
        entities,
        names_reasons: raw.reason_header.unwrap_or(is_development),
        user: raw.user.as_ref().map(|user| user.0.clone()),
        gateway_user: raw.gateway_user.as_ref().map(|user| user.0.clone()),
        group: raw.group.as_ref().map(|group| group.0.clone()),
        threads: raw.threads,
        drain_timeout_ms: raw.drain_timeout.0,
        websocket_drain_timeout_ms: raw.websocket_drain_timeout.unwrap_or(raw.drain_timeout).0,
    }
}

fn admin(raw: &raw::Admin, context: &mut Context<'_>) -> Admin {
    Admin {
        socket: raw.socket.as_ref().map(|socket| {
            let path = context.absolute(socket);
            listen::check_socket_path(&path, &["admin", "socket"], context);
            path
        }),
        group: raw.group.as_ref().map(|group| group.0.clone()),
        metrics: raw.metrics.as_ref().map(|metrics| match metrics {
            MetricsAt::Path(path) => Metrics::Path(path.clone()),
            MetricsAt::Address(address) => {
                let mode = listen::DEFAULT_SOCKET_MODE;
                Metrics::Listen(listen::address(address, mode, &["admin", "metrics"], context))
            }
        }),
        dashboard: raw.dashboard.as_ref().map(|raw| dashboard::dashboard(raw, context)),
    }
}
