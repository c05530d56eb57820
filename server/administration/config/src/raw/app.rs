//! `[app.NAME]`: an application and how requests map to its files.

use super::access::Access;
use super::compose::{Compose, Prefetch};
use super::condition::{Condition, If};
use super::debug::Debug;
use super::limits::RequestLimits;
use super::log::Log;
use super::maintenance::MaintenanceEntry;
use super::one_or_many::OneOrMany;
use super::page_cache::PageCacheEntry;
use super::php::Php;
use super::pool::Pool;
use super::process::Process;
use super::proxy::Proxy;
use super::rate_limit::ScriptRate;
use super::sandbox::SandboxEntry;
use super::table::table;
use super::tasks::Tasks;
use super::worker::{Mode, Worker};
use crate::scalar::{
    AnyStatus, AppName, As, ByteSize, Expression, FileExtension, FileName, FilePath, HeaderName,
    HeaderValue, HostPattern, PathPattern, PlainText, Scalar, StatusClass, UrlPath,
};
use outboard_static_files::Symlinks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

table! {
    /// An application.
    #[schemars(extend(
        "required" = ["root"],
        "x-hint" = "an app has a name: write [app.NAME] and its keys below it",
    ))]
    pub(crate) struct App {
        /// Document root.
        #[schemars(extend(
            "x-alias" = ["document_root", "DocumentRoot", "docroot", "chdir"],
            "x-hint" = "the directory with index.php, often \"public\": root = \"public\"",
        ))]
        pub(crate) root: FilePath = FilePath::default(),
        /// Host names of the app, such as `example.org` or `*.example.org`. Default: every host.
        #[schemars(extend("x-alias" = ["server_name", "ServerName", "ServerAlias", "host", "domain"]))]
        pub(crate) hosts: OneOrMany<HostPattern> = OneOrMany::Many(Vec::new()),
        /// URL path prefix of the app; the longest matching prefix wins. The rest of the path is looked
        /// up in `root`.
        #[schemars(extend("x-alias" = ["location", "Alias", "prefix", "path_prefix"]))]
        pub(crate) path: UrlPath = UrlPath("/".to_owned()),
        /// How PHP handles requests.
        #[schemars(extend("x-alias" = ["php_mode"]))]
        pub(crate) mode: Mode = Mode::default(),
        /// The worker script, in worker mode.
        pub(crate) worker: Worker = Worker::default(),
        /// Background tasks.
        pub(crate) tasks: Tasks = Tasks::default(),
        /// Programs that run next to the workers, such as `queue:work`: one table `[app.NAME.process.PROCESS]` for each.
        #[schemars(extend(
            "propertyNames" = { "format": AppName::NAME },
            "x-alias" = ["processes", "program", "programs", "daemon", "daemons"],
            "x-hint" = "a process has a name: write [app.NAME.process.PROCESS] and its keys below it",
        ))]
        pub(crate) process: BTreeMap<String, Process> = BTreeMap::new(),
        /// Namespaces of the entity store that the app's PHP may use. Default: all if the file has one
        /// app, none if it has several.
        pub(crate) kv_namespaces: Option<Vec<AppName>> = None,
        /// Index files of a directory; the first that exists is served.
        #[schemars(extend("x-alias" = ["DirectoryIndex"]))]
        pub(crate) index: Vec<FileName> = ["index.php", "index.html"].map(|name| FileName(name.to_owned())).to_vec(),
        /// Script for requests that match no file: its path, `"none"`, or `"auto"` for `/index.php` if
        /// the root has one.
        #[schemars(extend(
            "x-alias" = ["try_files", "FallbackResource"],
            "x-hint" = "write front_controller = \"none\", or the path of a script such as \"/index.php\"",
        ))]
        pub(crate) front_controller: PlainText = PlainText("auto".to_owned()),
        /// What requests have: one table `[app.NAME.condition.CONDITION]` for each. Rules refer to it by `if`.
        #[schemars(extend(
            "propertyNames" = { "format": AppName::NAME },
            "x-alias" = ["conditions", "map", "matcher", "RewriteCond", "SetEnvIf"],
            "x-hint" = "a condition has a name: write [app.NAME.condition.CONDITION] and its keys below it",
        ))]
        pub(crate) condition: BTreeMap<String, Condition> = BTreeMap::new(),
        /// Rules that change the path of a request before the file lookup.
        #[schemars(extend("x-alias" = ["RewriteRule", "return", "Redirect"]))]
        pub(crate) rewrite: Vec<Rewrite> = Vec::new(),
        /// Rules that change response headers.
        #[schemars(extend("x-alias" = ["add_header", "Header"]))]
        pub(crate) headers: Vec<HeaderRule> = Vec::new(),
        /// Headers that protect visitors, in responses that do not set them. `"basic"`: `X-Content-Type-Options:
        /// nosniff`, `Referrer-Policy: strict-origin-when-cross-origin` and `X-Frame-Options: SAMEORIGIN`.
        /// `"strict"`: the same without frames, and a content security policy that admits only what the app
        /// serves itself. Rules of `headers` come after it.
        #[schemars(extend("x-alias" = ["helmet", "secure_headers", "X-Frame-Options", "Content-Security-Policy"]))]
        pub(crate) security_headers: SecurityHeaders = SecurityHeaders::Off,
        /// Pages composed of scripts, upstream responses and files.
        #[schemars(extend("x-alias" = ["ssi", "subrequest", "content_by_lua"]))]
        pub(crate) compose: Vec<Compose> = Vec::new(),
        /// Upstream requests sent before a script runs.
        pub(crate) prefetch: Vec<Prefetch> = Vec::new(),
        /// Routes that are proxied to another server.
        #[schemars(extend("x-alias" = ["proxy_pass", "ProxyPass", "reverse_proxy"]))]
        pub(crate) proxy: Vec<Proxy> = Vec::new(),
        /// Page cache: `"off"`, `"auto"`, `"on"`, or a table.
        #[schemars(extend("x-alias" = ["fastcgi_cache", "proxy_cache", "cache"]))]
        pub(crate) page_cache: PageCacheEntry = PageCacheEntry::default(),
        /// Which clients may request which paths, and how often.
        #[schemars(extend("x-alias" = ["limit_req", "limit_req_zone", "auth_basic", "satisfy", "basic_auth", "forward_auth", "auth_request", "rate_limit"]))]
        pub(crate) access: Vec<Access> = Vec::new(),
        /// Maintenance: `true`, or a table. Clients get 503 with `Retry-After` and a page in place of the app.
        #[schemars(extend("x-alias" = ["maintenance_mode", "down"]))]
        pub(crate) maintenance: MaintenanceEntry = MaintenanceEntry::default(),
        /// Debugging with Xdebug: whose requests get a worker that has it.
        #[schemars(extend("x-alias" = ["xdebug", "debugger"]))]
        pub(crate) debug: Debug = Debug::default(),
        /// Rate limits by keys that scripts choose, with `Outboard\RateLimit`: one table
        /// `[app.NAME.rate_limits.LIMIT]` for each.
        #[schemars(extend("x-alias" = ["rate_limiter", "limiters"]))]
        pub(crate) rate_limits: BTreeMap<String, ScriptRate> = BTreeMap::new(),
        /// Paths that get 404, including everything below them. Case is ignored. A pattern is matched
        /// against the request path, the rewritten path, and the resulting file or script, including
        /// index files.
        #[schemars(extend("x-alias" = ["Deny", "Require"]))]
        pub(crate) deny: Vec<PathPattern> = Vec::new(),
        /// Directories in which no script runs, at any depth, such as upload directories. Requests for
        /// scripts there get 404.
        #[schemars(extend("x-alias" = ["engine", "RemoveHandler", "php_flag"]))]
        pub(crate) no_php_in: Vec<PathPattern> = Vec::new(),
        /// Whether requests of clients without a valid certificate get 403. A listener's `client_ca` has the
        /// authorities.
        #[schemars(extend("x-alias" = ["ssl_verify_client", "SSLVerifyClient", "SSLRequire"]))]
        pub(crate) require_client_certificate: bool = false,
        /// Pages for errors of the server itself, by status or class (`404`, `5xx`): files relative to
        /// the root.
        #[schemars(extend("propertyNames" = { "format": StatusClass::NAME }, "x-alias" = ["error_page", "ErrorDocument"]))]
        pub(crate) error_pages: BTreeMap<String, FilePath> = BTreeMap::new(),
        /// Static files.
        #[serde(rename = "static")]
        pub(crate) static_files: StaticFiles = StaticFiles::default(),
        /// Files that PHP can let the server send.
        pub(crate) sendfile: Sendfile = Sendfile::default(),
        /// Compresses text responses of PHP, composed pages and text responses of other servers of 1 KiB
        /// and more with brotli, zstd or gzip, as the client accepts, unless they are compressed already.
        /// Static files are sent from their precompressed siblings (`static.precompressed`), or compressed
        /// once and stored (`static.compressed_memory`).
        #[schemars(extend("x-alias" = ["gzip", "brotli", "encode", "mod_deflate", "SetOutputFilter"]))]
        pub(crate) compress: bool = false,
        /// User that PHP runs as. Default: `user` at the top of the file.
        pub(crate) user: Option<PlainText> = None,
        /// Group that PHP runs as. Default: `group` at the top of the file.
        pub(crate) group: Option<PlainText> = None,
        /// Files, programs and connections that PHP can reach: `"off"`, `"default"`, `"strict"`, or a table. Default: `"default"`, or `"off"`
        /// with `php.no_new_privileges = false`.
        #[schemars(extend("x-alias" = ["open_basedir", "ProtectSystem", "landlock", "seccomp", "chroot"]))]
        pub(crate) sandbox: Option<SandboxEntry> = None,
        /// Limits on the app's requests.
        pub(crate) limits: RequestLimits = RequestLimits::default(),
        /// The app's workers.
        pub(crate) pool: Pool = Pool::default(),
        /// The app's PHP settings.
        pub(crate) php: Php = Php::default(),
        /// The app's logs.
        pub(crate) log: Log = Log::default(),
    }
}

/// Headers that protect visitors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SecurityHeaders {
    /// None.
    #[default]
    Off,
    /// Those that hardly any application contradicts.
    Basic,
    /// Those that an application has to be written for.
    Strict,
}

/// A rule that changes the path of a request, or responds to it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewrite {
    /// Regular expression, matched against the decoded path below the app's prefix.
    #[serde(rename = "match")]
    pub(crate) pattern: Expression,
    /// New path, or target of a redirect. `$1` and `${name}` insert capture groups, `$$` a dollar
    /// sign. The query string is preserved unless `to` has one; a final `?` removes it.
    #[serde(default)]
    #[schemars(extend("x-literal" = true))]
    pub(crate) to: Option<PlainText>,
    /// Responds with this status: a redirect (301, 302, 303, 307, 308) to `to`, an error, or 200 with a `body`.
    /// Default: an internal rewrite.
    #[serde(default)]
    #[schemars(range(min = 200, max = 599))]
    pub(crate) status: Option<u16>,
    /// Text of a response with a `status` that does not redirect. A rule of `headers` sets its `Content-Type`, which is
    /// otherwise `text/plain; charset=utf-8`.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["respond", "text"], "x-literal" = true))]
    pub(crate) body: Option<PlainText>,
    /// Requests to which the rule applies.
    #[serde(default, rename = "when")]
    pub(crate) when: RewriteWhen,
    /// Conditions that have to hold.
    #[serde(default, rename = "if")]
    #[schemars(extend("x-alias" = ["RewriteCond", "conditions"]))]
    pub(crate) conditions: If,
    /// Whether a match skips the remaining rules.
    #[serde(default = "yes")]
    pub(crate) last: bool,
}

/// Requests to which a rule applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RewriteWhen {
    /// All.
    #[default]
    Always,
    /// Those whose path is neither a file nor a directory.
    Missing,
    /// Those whose path is a file or a directory.
    Exists,
}

/// A rule that changes response headers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HeaderRule {
    /// Paths to which the rule applies. Default: all.
    pub(crate) path: Option<PathPattern>,
    /// Conditions that have to hold.
    #[serde(rename = "if")]
    #[schemars(extend("x-alias" = ["conditions", "env"]))]
    pub(crate) conditions: If,
    /// Statuses of the responses to which the rule applies, such as `["2xx", "304"]`. Default: all. Without
    /// it, `Expires` and a `Cache-Control` that lets caches store a response are not sent with errors (400 and
    /// above), so that no client caches a missing file for a year.
    #[schemars(extend("x-alias" = ["always", "onsuccess"]))]
    pub(crate) status: Vec<AnyStatus>,
    /// Headers to set; values from the app are replaced.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) set: BTreeMap<String, HeaderValue>,
    /// Headers to add to those of the app.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) add: BTreeMap<String, HeaderValue>,
    /// Headers to set unless the app has set them.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) default: BTreeMap<String, HeaderValue>,
    /// Headers to remove, before `set` and `add`.
    #[schemars(extend("x-alias" = ["unset", "fastcgi_hide_header"]))]
    pub(crate) remove: Vec<HeaderName>,
}

table! {
    /// Static files.
    pub(crate) struct StaticFiles {
        /// Symbolic links to follow.
        #[schemars(extend("x-alias" = ["disable_symlinks", "FollowSymLinks", "SymLinksIfOwnerMatch"]))]
        pub(crate) symlinks: Symlinks = Symlinks::default(),
        /// Directories outside of the root that links may point into when `symlinks` is `"never"`.
        #[serde(with = "As::<Vec<FilePath>>")]
        pub(crate) symlink_targets: Vec<PathBuf> = Vec::new(),
        /// Whether files that `.htaccess` files restrict get 404: `Require`, `Deny`, `RewriteRule … [F]` and such,
        /// for directories and in `<Files>`. A restriction that is not understood denies. A file is read when it
        /// appears, without a reload.
        #[schemars(extend("x-alias" = ["AllowOverride", "AccessFileName"]))]
        pub(crate) htaccess: bool = true,
        /// Serves `style.css.br` (or `.zst`, `.gz`) for `style.css` if the client accepts the encoding.
        #[schemars(extend("x-alias" = ["gzip_static", "brotli_static"]))]
        pub(crate) precompressed: bool = true,
        /// Memory for files without precompressed siblings, which are compressed once in the background with
        /// `compress = true`; those that were not requested recently are removed. Files of less than 1 KiB,
        /// or of more than a quarter of this size, are not compressed. `0` turns it off.
        pub(crate) compressed_memory: ByteSize = ByteSize(8 << 20),
        /// Directories without an index whose files are listed, as a page or, for `Accept: application/json`, as JSON, unless
        /// there is a front controller. What a visitor could not download is not listed. Default: none.
        #[schemars(extend("x-alias" = ["Indexes", "browse", "directory_listing", "fancyindex"]))]
        pub(crate) autoindex: Vec<PathPattern> = Vec::new(),
        /// Content types by file extension, in addition to the built-in ones.
        #[schemars(extend("propertyNames" = { "format": FileExtension::NAME }, "x-alias" = ["types", "AddType"]))]
        pub(crate) mime: BTreeMap<String, HeaderValue> = BTreeMap::new(),
        /// `Cache-Control` header of files. Default: none.
        #[schemars(extend("x-alias" = ["expires", "ExpiresDefault"]))]
        pub(crate) cache_control: Option<HeaderValue> = None,
        /// Names with a leading dot that are served; all others get 404.
        pub(crate) allow_dotfiles: Vec<FileName> = vec![FileName(".well-known".to_owned())],
        /// Files that are served although they are named like databases, dumps, backups, logs, keys or
        /// sources; all other such files get 404.
        pub(crate) allow_private: Vec<PathPattern> = Vec::new(),
    }
}

/// Files that PHP can let the server send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sendfile {
    /// Directories, in addition to the root, that `X-Sendfile` can refer to.
    #[schemars(extend("x-alias" = ["XSendFilePath"]))]
    #[serde(with = "As::<Vec<FilePath>>")]
    pub roots: Vec<PathBuf>,
    /// Directories for the internal URLs of `X-Accel-Redirect`, by URL prefix, such as
    /// `"/protected/"`.
    #[schemars(extend("propertyNames" = { "format": UrlPath::NAME }, "x-alias" = ["internal", "alias"]))]
    #[serde(with = "As::<BTreeMap<String, FilePath>>")]
    pub accel: BTreeMap<String, PathBuf>,
}

fn yes() -> bool {
    true
}
