//! The keys of a configuration file and their defaults.
//!
//! These types are the schema: their doc comments become its descriptions and the tables of the
//! reference, and their `Default` implementations its defaults. Every struct rejects unknown keys.
//!
//! A setting is declared once: a type that only adds units and ranges to what is written is part of the
//! [`Config`](crate::Config) itself, and [`crate::checked`] does to it what depends on other keys or on the disk.
//! Fields with `#[serde(skip)]` are its results. The other types hold what is written.

mod access;
mod acme;
mod app;
mod compose;
mod condition;
mod condition_set;
mod dashboard;
mod debug;
mod entities;
mod environment;
mod limits;
mod listen;
mod log;
mod maintenance;
mod one_or_many;
mod page_cache;
mod php;
mod pool;
mod process;
mod proxy;
mod rate_limit;
mod redirect;
mod sandbox;
mod status_set;
mod table;
mod tasks;
mod tracing;
mod upstream;
mod worker;

pub(crate) use access::*;
pub use acme::*;
pub use app::*;
pub use compose::*;
pub(crate) use condition::*;
pub use condition_set::*;
pub(crate) use dashboard::*;
pub(crate) use debug::*;
pub use entities::*;
pub use environment::*;
pub use limits::*;
pub use listen::*;
pub use log::*;
pub(crate) use maintenance::*;
pub(crate) use one_or_many::*;
pub(crate) use page_cache::*;
pub use php::*;
pub use pool::*;
pub use process::*;
pub use proxy::*;
pub(crate) use rate_limit::*;
pub(crate) use redirect::*;
pub(crate) use sandbox::*;
pub use status_set::*;
pub use tasks::*;
pub use tracing::*;
pub use upstream::*;
pub use worker::*;

use crate::scalar::{AppName, As, ByteSize, Count, FilePath, MetricsAt, Peer, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use table::table;

table! {
    /// The configuration of an Outboard server.
    pub(crate) struct File {
        /// Files to include, such as `"conf.d/*.toml"`: relative to the including file, in alphabetical
        /// order. `*` and `?` match within a name. Paths in included files are resolved against the
        /// directory of the main file.
        #[schemars(extend("x-alias" = ["Include", "IncludeOptional", "import"]))]
        pub(crate) include: OneOrMany<FilePath> = OneOrMany::Many(Vec::new()),
        /// Purpose of the server. In `"development"`, file changes take effect at once and errors are
        /// shown in the browser.
        #[schemars(extend("x-alias" = ["env", "enviroment", "APP_ENV"]))]
        pub(crate) environment: Environment = Environment::default(),
        /// Addresses to accept connections on: one address, an array of addresses, or `[[listen]]`
        /// tables.
        pub(crate) listen: OneOrMany<ListenEntry> = OneOrMany::One(ListenEntry::default()),
        /// Peers whose `X-Forwarded-*` headers are trusted, for listeners without `trusted_proxies` of
        /// their own.
        #[schemars(extend("x-alias" = ["set_real_ip_from", "real_ip", "RemoteIPTrustedProxy"]))]
        pub(crate) trusted_proxies: Vec<Peer> = Vec::new(),
        /// Networks by name, for every key that takes networks: a network, a file with one in each line, or several
        /// of them: `office = ["192.0.2.0/24", "office.txt"]`. `cloudflare`, `fastly` and `private` are known; a list
        /// here takes their place.
        #[schemars(extend(
            "propertyNames" = { "format": <AppName as crate::scalar::Scalar>::NAME },
            "x-alias" = ["geo", "set_real_ip_from"],
        ))]
        pub(crate) networks: BTreeMap<String, OneOrMany<PlainText>> = BTreeMap::new(),
        /// Database of the countries of addresses in the format of MaxMind, such as `GeoLite2-Country.mmdb`: for
        /// `country` of conditions. A reload reads it again.
        #[schemars(extend("x-alias" = ["geoip2", "geoip_country", "GeoIPDBFile", "maxmind"]))]
        pub(crate) country_database: Option<FilePath> = None,
        /// `X-Forwarded-*` headers accepted from trusted proxies. Add `"host"` only if the proxy sets
        /// that header itself: with a proxy that passes the client's header through, clients choose the
        /// host name used in generated links.
        #[schemars(extend("x-alias" = ["real_ip_header"]))]
        pub(crate) forwarded_headers: Vec<ForwardedHeader> = ForwardedHeader::USUAL.to_vec(),
        /// Whether an error response states its reason, in the header `X-Outboard-Reason` and on the
        /// error page. Default: only in development. The error log states it always.
        pub(crate) reason_header: Option<bool> = None,
        /// User that PHP runs as when root starts the server. Default: `www-data`, or `nobody` if that
        /// does not exist. `"root"` runs both PHP and the gateway as root.
        #[schemars(extend("x-alias" = ["User"]))]
        pub(crate) user: Option<PlainText> = None,
        /// User that the gateway switches to after root has started it and the addresses are bound. It
        /// must differ from every user that PHP runs as. Default: `outboard`, or `nobody` if that does
        /// not exist.
        #[schemars(extend("x-alias" = ["server_user"]))]
        pub(crate) gateway_user: Option<PlainText> = None,
        /// Group that PHP runs as. Default: the primary group of the user.
        #[schemars(extend("x-alias" = ["Group"]))]
        pub(crate) group: Option<PlainText> = None,
        /// Threads of the gateway, each with connections, event loop and share of the workers of its own.
        /// `"auto"`: one for each processor core that the server may use, and a single one on two cores, of
        /// which PHP needs the other. There is a single one in development and with programs that start a server. A change takes effect with a restart.
        #[schemars(extend("x-alias" = ["worker_processes", "httpdWorkers", "reactor_num"], "x-minimum" = 1, "x-maximum" = 256))]
        pub(crate) threads: Count = Count::Auto,
        /// Maximum time for running requests to finish after a reload or a stop.
        #[schemars(extend("x-alias" = ["process_control_timeout", "worker_shutdown_timeout", "GracefulShutdownTimeout"]))]
        pub(crate) drain_timeout: Period = Period(30_000),
        /// Maximum time that WebSocket connections stay open in the old process after an upgrade. Then clients get
        /// a close frame with the status 1001. Default: `drain_timeout`. A reload does not end them, and a stop
        /// ends them at once.
        #[schemars(extend("x-alias" = ["worker_shutdown_timeout"]))]
        pub(crate) websocket_drain_timeout: Option<Period> = None,
        /// The applications: one table `[app.NAME]` for each.
        #[schemars(extend(
            "propertyNames" = { "format": <AppName as crate::scalar::Scalar>::NAME },
            "x-alias" = ["apps", "server", "VirtualHost", "site", "sites"],
            "x-hint" = "an app has a name: write [app.NAME] and its keys below it",
        ))]
        pub(crate) app: BTreeMap<String, App> = BTreeMap::new(),
        /// Hosts whose requests are redirected to another host. Of a redirect and an app, the one that names a host
        /// more closely responds.
        #[schemars(extend("x-alias" = ["redirects", "redir", "RedirectPermanent"]))]
        pub(crate) redirect: Vec<Redirect> = Vec::new(),
        /// Certificates for listeners with `tls = "auto"`, which the server obtains itself.
        #[schemars(extend("x-alias" = ["acme_issuer", "letsencrypt", "certificates"]))]
        pub(crate) acme: Acme = Acme::default(),
        /// Limits on connections, and default limits on requests.
        pub(crate) limits: Limits = Limits::default(),
        /// Default pool settings for every app.
        pub(crate) pool: Pool = Pool::default(),
        /// PHP settings of every app; an app adds to them.
        pub(crate) php: Php = Php::default(),
        /// Default settings for static files.
        #[serde(rename = "static")]
        pub(crate) static_files: StaticFiles = StaticFiles::default(),
        /// Logs of the server, and default log settings for every app.
        pub(crate) log: Log = Log::default(),
        /// Temporary files and sockets of the gateway.
        pub(crate) io: Io = Io::default(),
        /// Settings for `environment = "development"`.
        pub(crate) development: Development = Development::default(),
        /// Connections to other HTTP servers, and `[upstream.NAME]`: servers that share requests.
        #[schemars(extend("x-alias" = ["proxy"]))]
        pub(crate) upstream: Upstream = Upstream::default(),
        /// The entity store: key-value records, available over HTTP and to PHP.
        pub(crate) kv: Entities = Entities::default(),
        /// Banned clients.
        pub(crate) bans: Bans = Bans::default(),
        /// The server through which gateways share rate limits. Default: none.
        pub(crate) rate_sharing: Option<RateSharing> = None,
        /// Status and metrics.
        pub(crate) admin: Admin = Admin::default(),
        /// Traces of requests.
        #[schemars(extend("x-alias" = ["otel", "opentelemetry", "telemetry", "trace"]))]
        pub(crate) tracing: Tracing = Tracing::default(),
    }
}

table! {
    /// Temporary files and sockets of the gateway.
    #[derive(PartialEq, Eq)]
    pub struct Io {
        /// Length of the kernel's accept queue, per listener.
        #[schemars(range(min = 1, max = 65535), extend("x-alias" = ["ListenBacklog"]))]
        pub backlog: u32 = 4096,
        /// Whether connections without TLS are served by as few threads as their load needs, which costs least. False:
        /// they are always spread over all.
        pub gather_connections: bool = true,
        /// Directory for request bodies, and for responses to slow clients, that are too large for memory.
        #[schemars(extend("x-alias" = ["client_body_temp_path", "upload_tmp_dir"]))]
        #[serde(with = "As::<FilePath>")]
        pub temp_dir: PathBuf = "/tmp".into(),
        /// Maximum total size of all files there. At the limit, request bodies get 507 (`spool_full`), and
        /// scripts and upstreams have to wait for slow clients. One response can use a sixteenth.
        #[schemars(extend("x-alias" = ["proxy_max_temp_file_size"]))]
        #[serde(rename = "max_temp_size", with = "As::<ByteSize>")]
        pub max_temp_bytes: u64 = 4 << 30,
    }
}

/// Status and metrics.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// Unix socket for `outboard status`, `outboard reload` and other commands. Default: chosen by
    /// the command line.
    #[schemars(extend("x-alias" = ["pid", "pm.status_listen"]))]
    pub(crate) socket: Option<FilePath>,
    /// Group whose members may use the admin socket, in addition to root and the server's own user.
    /// Users that an app's PHP runs as are always refused.
    #[schemars(extend("x-alias" = ["listen.group"]))]
    pub(crate) group: Option<PlainText>,
    /// Where Prometheus metrics are served: a URL path on every listener, or a separate address.
    /// Default: nowhere.
    #[schemars(extend("x-alias" = ["pm.status_path", "stub_status"]))]
    pub(crate) metrics: Option<MetricsAt>,
    /// The dashboard on an address of its own. Default: on the admin socket only.
    pub(crate) dashboard: Option<Dashboard>,
}
