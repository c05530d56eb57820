//! `page_cache` of an app: cached responses.

use super::table::table;
use crate::scalar::{AppName, ByteSize, FilePath, Peer, Period, PlainText, Portion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page cache: the mode alone, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum PageCacheEntry {
    /// The mode alone.
    Mode(PageCacheMode),
    /// A table.
    Table(Box<PageCache>),
}

/// Which responses are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PageCacheMode {
    /// None.
    Off,
    /// Responses with a lifetime of their own, and for 1 s anonymous responses without one.
    Auto,
    /// The same, with 60 s instead of 1 s.
    On,
}

table! {
    /// The page cache: stored responses that are served without PHP.
    pub(crate) struct PageCache {
        /// Which responses are cached.
        pub(crate) mode: PageCacheMode = PageCacheMode::Auto,
        /// Memory for cached pages, index included.
        #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "1024 GiB", "x-alias" = ["fastcgi_cache_path", "keys_zone", "budget_bytes"]))]
        pub(crate) max_memory: ByteSize = ByteSize(64 << 20),
        /// Directory for cached pages, so that they survive a restart. Default: memory only.
        pub(crate) disk: Option<FilePath> = None,
        /// Maximum disk space of the cache.
        #[schemars(extend("x-minimum" = "1 MiB", "x-alias" = ["max_size"]))]
        pub(crate) max_disk: ByteSize = ByteSize(1 << 30),
        /// Redis or Valkey server used as a cache tier that several gateways share. Default: none.
        pub(crate) shared: Option<PageCacheShared> = None,
        /// Share of hits that are rendered again to verify that the page does not depend on the
        /// visitor; a page that differs is removed from the cache.
        pub(crate) audit: Portion = Portion(0),
        /// Lifetime of a response that sets none (no `Cache-Control`, no `Expires`). Default: 1 s in
        /// `auto`, 60 s in `on`; 0 disables.
        #[schemars(extend("x-alias" = ["fastcgi_cache_valid"]))]
        pub(crate) default_ttl: Option<Period> = None,
        /// Time for which an expired page is still served while it is rendered again, unless the
        /// response sets `stale-while-revalidate`. Default: `default_ttl`.
        #[schemars(extend("x-alias" = ["fastcgi_cache_background_update", "grace"]))]
        pub(crate) stale_while_revalidate: Option<Period> = None,
        /// Time for which an expired page is still served if rendering it fails, unless the response
        /// sets `stale-if-error`.
        #[schemars(extend("x-alias" = ["fastcgi_cache_use_stale"]))]
        pub(crate) stale_if_error: Period = Period(600_000),
        /// Maximum time a request waits for another request that is rendering the same page; then it is
        /// handled on its own.
        #[schemars(extend("x-alias" = ["fastcgi_cache_lock_timeout"]))]
        pub(crate) lock_timeout: Period = Period(10_000),
        /// Maximum size of a cached body.
        pub(crate) max_body: ByteSize = ByteSize(4 << 20),
        /// Stores text also in brotli, zstd and gzip, for clients that accept them.
        #[schemars(extend("x-alias" = ["gzip", "brotli"]))]
        pub(crate) compress: bool = true,
        /// Whether clients can request a fresh response (`Cache-Control: no-cache` and similar).
        pub(crate) honor_client_cache_control: bool = true,
        /// Applications with known cookies and paths: `"auto"` (detected by the files of the root),
        /// `"none"`, or names such as `"wordpress"`.
        pub(crate) presets: Vec<PlainText> = vec![PlainText("auto".to_owned())],
        /// Additional cookies that mark a response as personal; `*` matches anything.
        #[schemars(extend("x-alias" = ["fastcgi_cache_bypass", "fastcgi_no_cache"]))]
        pub(crate) login_cookies: Vec<PlainText> = Vec::new(),
        /// Additional cookies that do not affect a page; `*` matches anything.
        pub(crate) ignored_cookies: Vec<PlainText> = Vec::new(),
        /// Additional request headers that do not affect a page; `*` matches anything. A request with
        /// any other unknown header is not anonymous.
        pub(crate) ignored_headers: Vec<PlainText> = Vec::new(),
        /// Additional paths that are never cached; `*` matches anything.
        pub(crate) bypass_paths: Vec<PlainText> = Vec::new(),
        /// Peers that may send `PURGE` requests.
        pub(crate) purge_from: Vec<Peer> = Vec::new(),
    }
}

/// The shared cache tier.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageCacheShared {
    /// URL of the server, `redis://USER:PASSWORD@HOST:PORT/DATABASE`; everything but the host is
    /// optional. `rediss://` uses TLS.
    #[schemars(extend("x-alias" = ["url", "host", "redis"]))]
    pub(crate) server: PlainText,
    /// Prefix of all keys; gateways with the same name share pages. Default: the app's name.
    #[schemars(extend("x-alias" = ["prefix"]))]
    pub(crate) name: Option<AppName>,
    /// Maximum time to wait for the server. On expiry a page is rendered instead, and a purge
    /// returns before the server has confirmed it.
    #[serde(default = "quarter_second")]
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) timeout: Period,
    /// Whether the certificate of a `rediss` server is verified.
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
