//! The page caches.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[
    describe::<Stats>(),
    describe::<List>(),
    describe::<Get>(),
    describe::<Purge>(),
    describe::<Audit>(),
];

/// Counters and sizes of each page cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stats {
    /// One app only.
    pub app: Option<String>,
}

/// The reply to [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheStats {
    /// By the name of the app.
    pub apps: BTreeMap<String, AppStats>,
}

/// The page cache of one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppStats {
    /// Responses in memory.
    pub entries: usize,
    /// Memory in use, the index included.
    pub used_bytes: usize,
    /// `page_cache.max_memory`.
    pub max_bytes: usize,
    /// Requests that got a response from the cache.
    pub hit: u64,
    /// Requests that got a stale response.
    pub stale: u64,
    /// Requests whose response was not in the cache.
    pub miss: u64,
    /// Requests that do not use the cache.
    pub bypass: u64,
    /// Requests that wait for another one to render the page.
    pub waiting: usize,
    /// Responses stored since start.
    pub stored: u64,
    /// Responses evicted since start to make room.
    pub evicted: u64,
    /// Responses purged since start.
    pub purged: u64,
    /// Responses on disk.
    pub disk_entries: u64,
    /// Their bytes.
    pub disk_bytes: u64,
    /// The presets in use.
    pub presets: Vec<String>,
    /// The shared tier, if there is one.
    pub shared: Option<SharedStats>,
    /// Sampled checks of hits.
    pub audit: AuditStats,
}

/// The tier that gateways share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedStats {
    /// Host and port of the Redis server.
    pub server: String,
    /// The name under which gateways share.
    pub name: String,
    /// Reason why the server is not in use at the moment. Missing if it is in use.
    pub away: Option<String>,
    /// The number of the last purge that was seen.
    pub generation: u64,
    /// Pages read from it.
    pub hits: u64,
    /// Pages written to it.
    pub stores: u64,
    /// Purges published.
    pub purges_sent: u64,
    /// Purges of other gateways carried out.
    pub purges_received: u64,
    /// Purges that the server has not confirmed yet.
    pub purges_unconfirmed: usize,
}

/// Checks whether a cached page is the same for everybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditStats {
    /// Pages checked since start.
    pub examined: u64,
    /// Paths that are no longer cached because the check found a difference.
    pub removed: Vec<String>,
}

/// The cached responses, at most 1000.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct List {
    /// One app only.
    pub app: Option<String>,
    /// Only URLs, or paths if it starts with `/`, that start with this.
    pub prefix: Option<String>,
}

/// The reply to [`List`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entries {
    /// One per stored response: a URL with variants has several.
    pub entries: Vec<Entry>,
}

/// A cached response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Name of the app.
    pub app: String,
    /// URL of the page.
    pub url: String,
    /// Status of the response.
    pub status: u16,
    /// Length of its body without content coding.
    pub body_bytes: usize,
    /// Seconds since the origin generated it.
    pub age_s: u32,
    /// Seconds for which it stays fresh; negative: it is stale.
    pub fresh_for_s: i64,
    /// Request headers that select among variants.
    pub varies_by: Vec<String>,
    /// Content codings that are stored in addition to the plain body.
    pub codings: Vec<String>,
}

/// The cached responses of one URL, with their headers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Get {
    /// One app only.
    pub app: Option<String>,
    /// The URL, or its path and query if it starts with `/`. Required.
    pub url: Option<String>,
}

/// The reply to [`Get`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// One per stored response.
    pub entries: Vec<DetailedEntry>,
}

/// A cached response with its headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DetailedEntry {
    /// The rest.
    #[serde(flatten)]
    pub entry: Entry,
    /// Name and value of each header.
    pub headers: Vec<(String, String)>,
    /// Which rule decided the lifetime.
    pub lifetime_from: String,
    /// Which visitors may get it.
    pub audience: String,
}

/// Removes responses from the caches. One of `url`, `prefix`, `tag` and `all` is required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Purge {
    /// One app only.
    pub app: Option<String>,
    /// This URL, or path and query if it starts with `/`.
    pub url: Option<String>,
    /// URLs or paths that start with this.
    pub prefix: Option<String>,
    /// Responses with one of these tags; may be repeated.
    pub tag: Vec<String>,
    /// Everything.
    pub all: bool,
    /// Marks responses stale instead, so that they are used for a minute while new ones are rendered.
    pub soft: bool,
}

/// The reply to [`Purge`], and to the HTTP method `PURGE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Purged {
    /// Responses removed here.
    pub purged: usize,
    /// With a shared tier: whether its server has confirmed the purge. If not, the other gateways
    /// follow once it is back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
}

/// Renders remembered pages again as other visitors and compares them with the cached ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Audit {
    /// One app only.
    pub app: Option<String>,
    /// Number of pages of each app, the latest first. Default: all that are remembered.
    pub sample: Option<usize>,
}

/// The reply to [`Audit`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audited {
    /// Pages compared.
    pub examined: u64,
    /// Pages that differ from visitor to visitor; they are no longer cached.
    #[serde(rename = "unsafe")]
    pub unsafe_pages: Vec<Finding>,
}

/// A page that must not be cached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the app.
    pub app: String,
    /// URL of the page.
    pub url: String,
    /// Part of the request that makes the difference.
    pub by: String,
    /// Where the pages differ.
    pub excerpt: String,
}

impl Endpoint for Stats {
    type Reply = CacheStats;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/cache/stats";
}

impl Endpoint for List {
    type Reply = Entries;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/cache/list";
}

impl Endpoint for Get {
    type Reply = Details;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/cache/get";
}

impl Endpoint for Purge {
    type Reply = Purged;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/cache/purge";
}

impl Endpoint for Audit {
    type Reply = Audited;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/cache/audit";
}
