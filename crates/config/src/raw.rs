//! What a file may say, key by key, with what holds when it says nothing.
//!
//! These types are the schema: their doc comments become its descriptions (and the reference's),
//! their `Default` its defaults. They hold what was written; [`crate::checked`] turns them into
//! what is true. Every struct refuses unknown keys.

mod app;
mod compose;
mod entities;
mod environment;
mod limits;
mod listen;
mod log;
mod page_cache;
mod php;
mod pool;
mod proxy;
mod tasks;
mod worker;

pub(crate) use app::*;
pub(crate) use compose::*;
pub use entities::{Durability, EntityMode, Overload};
pub(crate) use entities::{Entities, EntityEngine};
pub(crate) use environment::*;
pub(crate) use limits::*;
pub(crate) use listen::*;
pub(crate) use log::*;
pub(crate) use page_cache::*;
pub(crate) use php::*;
pub(crate) use pool::*;
pub(crate) use proxy::*;
pub(crate) use tasks::*;
pub(crate) use worker::*;

use crate::scalar::{AppName, ByteSize, FilePath, MetricsAt, Peer, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The configuration of an Outboard server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct File {
    /// What the server is for: `"production"`, or `"development"`, where every change of a file is
    /// seen at once and errors are shown to the visitor.
    #[schemars(extend("x-alias" = ["env", "enviroment", "APP_ENV"]))]
    pub(crate) environment: Environment,
    /// Where to accept connections: an address, a list of them, or `[[listen]]` tables.
    pub(crate) listen: OneOrMany<ListenEntry>,
    /// Peers whose `X-Forwarded-*` headers are believed, for listeners that do not name their own.
    #[schemars(extend("x-alias" = ["set_real_ip_from", "real_ip", "RemoteIPTrustedProxy"]))]
    pub(crate) trusted_proxies: Vec<Peer>,
    /// Which `X-Forwarded-*` headers are believed from trusted proxies. `"host"` only if the proxy
    /// sets the header itself: one that hands the client's through lets visitors choose the host
    /// that links are made with.
    #[schemars(extend("x-alias" = ["real_ip_header"]))]
    pub(crate) forwarded_headers: Vec<ForwardedHeader>,
    /// Whether a refusal says its reason, in the header `X-Outboard-Reason` and on its page; absent:
    /// in development only. The error log says it in any case.
    pub(crate) reason_header: Option<bool>,
    /// The user that PHP runs as when root starts the server; absent: `www-data`, or `nobody` where
    /// there is none. `"root"` insists on root, for the gateway as well.
    #[schemars(extend("x-alias" = ["User"]))]
    pub(crate) user: Option<PlainText>,
    /// The user that the gateway goes on as when root starts the server, once its addresses are
    /// bound: none that PHP runs as. Absent: `outboard`, or else `nobody`.
    #[schemars(extend("x-alias" = ["server_user"]))]
    pub(crate) gateway_user: Option<PlainText>,
    /// The group that PHP runs as; absent: the user's own.
    #[schemars(extend("x-alias" = ["Group"]))]
    pub(crate) group: Option<PlainText>,
    /// How long requests may still run after a reload or a stop was asked for.
    #[schemars(extend("x-alias" = ["process_control_timeout", "worker_shutdown_timeout", "GracefulShutdownTimeout"]))]
    pub(crate) drain_timeout: Period,
    /// The applications, each under its name: `[app.NAME]`.
    #[schemars(extend(
        "propertyNames" = { "format": <AppName as crate::scalar::Scalar>::NAME },
        "x-alias" = ["apps", "server", "VirtualHost", "site", "sites"],
        "x-hint" = "an app has a name: write [app.NAME] and its keys below it",
    ))]
    pub(crate) app: BTreeMap<String, App>,
    /// Limits of connections, and of requests for apps that have none of their own.
    pub(crate) limits: Limits,
    /// The pool of apps that have none of their own.
    pub(crate) pool: Pool,
    /// The PHP settings of every app; an app adds to them.
    pub(crate) php: Php,
    /// How every app serves files; an app may differ.
    #[serde(rename = "static")]
    pub(crate) static_files: StaticFiles,
    /// Logs of the server and of apps that have none of their own.
    pub(crate) log: Log,
    /// The gateway's own files and sockets.
    pub(crate) io: Io,
    /// What is special with `environment = "development"`.
    pub(crate) development: Development,
    /// Requests to other servers.
    #[schemars(extend("x-alias" = ["proxy"]))]
    pub(crate) upstream: Upstream,
    /// The entity store: records under names, over HTTP and for PHP.
    #[schemars(extend("x-former" = ["entities"]))]
    pub(crate) kv: Entities,
    /// Status and metrics.
    pub(crate) admin: Admin,
}

impl Default for File {
    fn default() -> Self {
        File {
            environment: Environment::default(),
            listen: OneOrMany::One(ListenEntry::default()),
            trusted_proxies: Vec::new(),
            forwarded_headers: ForwardedHeader::USUAL.to_vec(),
            reason_header: None,
            user: None,
            gateway_user: None,
            group: None,
            drain_timeout: Period(30_000),
            app: BTreeMap::new(),
            limits: Limits::default(),
            pool: Pool::default(),
            php: Php::default(),
            static_files: StaticFiles::default(),
            log: Log::default(),
            io: Io::default(),
            development: Development::default(),
            upstream: Upstream::default(),
            kv: Entities::default(),
            admin: Admin::default(),
        }
    }
}

/// A value, or several in an array.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum OneOrMany<T> {
    // First, because serde would also read an array as a struct, field by field.
    Many(Vec<T>),
    One(T),
}

impl<T> OneOrMany<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }
}

/// The gateway's own files and sockets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Io {
    /// Connections that the kernel keeps waiting to be accepted, per listener.
    #[schemars(range(min = 1, max = 65535), extend("x-alias" = ["ListenBacklog"]))]
    pub(crate) backlog: u32,
    /// The folder of request bodies, and of answers that slow clients have not taken, that are too
    /// large for memory.
    #[schemars(extend("x-former" = ["spool"], "x-alias" = ["client_body_temp_path", "upload_tmp_dir"]))]
    pub(crate) temp_dir: FilePath,
    /// What all files there may take together. Beyond it a body is refused with 507 (`spool_full`), and
    /// scripts and other servers wait for slow clients. One answer may take a sixteenth.
    #[schemars(extend("x-former" = ["spool_size"], "x-alias" = ["proxy_max_temp_file_size"]))]
    pub(crate) max_temp_size: ByteSize,
}

impl Default for Io {
    fn default() -> Self {
        Io {
            backlog: 4096,
            temp_dir: FilePath("/tmp".to_owned()),
            max_temp_size: ByteSize(4 << 30),
        }
    }
}

/// Status and metrics.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// The Unix socket that `outboard status` and `outboard reload` talk to; absent: the command
    /// line chooses one.
    #[schemars(extend("x-alias" = ["pid", "pm.status_listen"]))]
    pub(crate) socket: Option<FilePath>,
    /// The group whose members may use the admin socket, beside root and the server's own user.
    /// Users that an app's PHP runs as are refused all the same.
    #[schemars(extend("x-alias" = ["listen.group"]))]
    pub(crate) group: Option<PlainText>,
    /// Where Prometheus metrics are served: a URL path on every listener, or an address of their
    /// own; absent: nowhere.
    #[schemars(extend("x-alias" = ["pm.status_path", "stub_status"]))]
    pub(crate) metrics: Option<MetricsAt>,
}
