//! `page_cache` of an app: answers that are kept.

use crate::scalar::{AppName, ByteSize, FilePath, Peer, Period, PlainText, Portion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether answers are kept: the mode alone, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum PageCacheEntry {
    /// The mode alone.
    Mode(PageCacheMode),
    /// A table.
    Table(Box<PageCache>),
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PageCacheMode {
    /// Nothing.
    Off,
    /// What says itself how long it may be kept, and for a second what says nothing and is for
    /// nobody in particular.
    Auto,
    /// The same, but a minute for what says nothing.
    On,
}

/// Answers that are kept, so that PHP makes them once for many visitors.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PageCache {
    /// How much is kept.
    pub(crate) mode: PageCacheMode,
    /// Memory of all that is kept, indices included.
    #[schemars(extend("x-former" = ["budget"], "x-minimum" = "64 KiB", "x-maximum" = "1024 GiB", "x-alias" = ["fastcgi_cache_path", "keys_zone", "budget_bytes"]))]
    pub(crate) max_memory: ByteSize,
    /// A folder for what is kept, so that it survives a restart; absent: memory alone.
    pub(crate) disk: Option<FilePath>,
    /// What that may hold.
    #[schemars(extend("x-former" = ["disk_budget"], "x-minimum" = "1 MiB", "x-alias" = ["max_size"]))]
    pub(crate) max_disk: ByteSize,
    /// A Redis or Valkey that several gateways share what is kept by; absent: each has its own.
    pub(crate) shared: Option<PageCacheShared>,
    /// The share of hits that are made again to see whether the kept page is the same for everybody;
    /// what is not is taken out of the cache.
    pub(crate) audit: Portion,
    /// How long an answer is kept that says nothing about it; absent: as `mode` has it; 0: not at
    /// all. What says something is kept as long as it says.
    #[schemars(extend("x-former" = ["silent"], "x-alias" = ["fastcgi_cache_valid"]))]
    pub(crate) default_ttl: Option<Period>,
    /// How much longer an answer is used while a new one is made, unless it says so itself;
    /// absent: as long as `default_ttl`.
    #[schemars(extend("x-alias" = ["fastcgi_cache_background_update", "grace"]))]
    pub(crate) stale_while_revalidate: Option<Period>,
    /// How much longer an answer is used when a new one cannot be made, unless it says so itself.
    #[schemars(extend("x-alias" = ["fastcgi_cache_use_stale"]))]
    pub(crate) stale_if_error: Period,
    /// How long a request waits for another that asks for the same before it is answered by itself.
    #[schemars(extend("x-former" = ["wait"], "x-alias" = ["fastcgi_cache_lock_timeout"]))]
    pub(crate) lock_timeout: Period,
    /// The longest body that is kept.
    pub(crate) max_body: ByteSize,
    /// Whether kept texts are also kept in brotli, zstd and gzip, for clients that take them.
    #[schemars(extend("x-alias" = ["gzip", "brotli"]))]
    pub(crate) compress: bool,
    /// Whether clients may ask for something newer (`Cache-Control: no-cache` and the like).
    #[schemars(extend("x-former" = ["heed_requests"]))]
    pub(crate) honor_client_cache_control: bool,
    /// Applications whose cookies and paths are known: `"auto"` finds out by the files of the root,
    /// `"none"`, or names such as `"wordpress"`.
    pub(crate) presets: Vec<PlainText>,
    /// Further cookies that say that a page is personal; `*` stands for anything.
    #[schemars(extend("x-alias" = ["fastcgi_cache_bypass", "fastcgi_no_cache"]))]
    pub(crate) login_cookies: Vec<PlainText>,
    /// Further cookies that change nothing in a page.
    #[schemars(extend("x-former" = ["harmless_cookies"]))]
    pub(crate) ignored_cookies: Vec<PlainText>,
    /// Header fields of requests that change nothing in a page, beside those that are known; `*`
    /// stands for anything. Any other makes whoever sends it somebody in particular.
    #[schemars(extend("x-former" = ["harmless_headers"]))]
    pub(crate) ignored_headers: Vec<PlainText>,
    /// Further paths that are never kept; `*` stands for anything.
    #[schemars(extend("x-former" = ["never"]))]
    pub(crate) bypass_paths: Vec<PlainText>,
    /// Peers whose `PURGE` requests are obeyed.
    pub(crate) purge_from: Vec<Peer>,
}

/// Where pages and purges are shared among machines.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageCacheShared {
    /// The server: `redis://USER:PASSWORD@HOST:PORT/DATABASE`, of which all but the host may be
    /// absent; `rediss://` for TLS.
    #[schemars(extend("x-alias" = ["url", "host", "redis"]))]
    pub(crate) server: PlainText,
    /// What all that is kept there begins with: gateways with the same name share; absent: the
    /// app's name.
    #[schemars(extend("x-alias" = ["prefix"]))]
    pub(crate) name: Option<AppName>,
    /// How long an answer of the server may take: a page is made instead, and a purge returns before
    /// the server has confirmed it.
    #[serde(default = "quarter_second")]
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) timeout: Period,
    /// Whether the certificate of a `rediss` server is checked.
    #[serde(default = "yes")]
    pub(crate) verify: bool,
}

fn quarter_second() -> Period {
    Period(250)
}

fn yes() -> bool {
    true
}

impl Default for PageCacheEntry {
    fn default() -> Self {
        Self::Mode(PageCacheMode::Off)
    }
}

impl Default for PageCache {
    fn default() -> Self {
        PageCache {
            mode: PageCacheMode::Auto,
            max_memory: ByteSize(64 << 20),
            disk: None,
            max_disk: ByteSize(1 << 30),
            shared: None,
            audit: Portion(0),
            default_ttl: None,
            stale_while_revalidate: None,
            stale_if_error: Period(600_000),
            lock_timeout: Period(10_000),
            max_body: ByteSize(4 << 20),
            compress: true,
            honor_client_cache_control: true,
            presets: vec![PlainText("auto".to_owned())],
            login_cookies: Vec::new(),
            ignored_cookies: Vec::new(),
            ignored_headers: Vec::new(),
            bypass_paths: Vec::new(),
            purge_from: Vec::new(),
        }
    }
}
