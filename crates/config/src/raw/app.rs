//! `[app.NAME]`: an application and how requests find its files.

use super::{
    Compose, Log, Mode, OneOrMany, PageCacheEntry, Php, Pool, Prefetch, Proxy, RequestLimits,
    Tasks, Worker,
};
use crate::scalar::{
    AppName, Expression, FileExtension, FileName, FilePath, HeaderName, HeaderValue, HostPattern,
    PathPattern, PlainText, Scalar, StatusClass, UrlPath,
};
use outboard_static_files::Symlinks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An application.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend(
    "required" = ["root"],
    "x-hint" = "an app has a name: write [app.NAME] and its keys below it",
))]
pub(crate) struct App {
    /// The folder that the app's URLs lead to.
    #[schemars(extend(
        "x-alias" = ["document_root", "DocumentRoot", "docroot", "chdir"],
        "x-hint" = "the folder with index.php in it, often \"public\": root = \"public\"",
    ))]
    pub(crate) root: FilePath,
    /// The host names the app answers to, `*.example.org` included; none: every host.
    #[schemars(extend("x-alias" = ["server_name", "ServerName", "ServerAlias", "host", "domain"]))]
    pub(crate) hosts: OneOrMany<HostPattern>,
    /// The beginning of the URL paths the app answers to; the longest one wins. The rest of the
    /// path is looked up in `root`.
    #[schemars(extend("x-alias" = ["location", "Alias", "prefix", "path_prefix"]))]
    pub(crate) path: UrlPath,
    /// How requests are answered.
    #[schemars(extend("x-alias" = ["php_mode"]))]
    pub(crate) mode: Mode,
    /// The script that stays, in worker mode.
    pub(crate) worker: Worker,
    /// Work that no request waits for.
    pub(crate) tasks: Tasks,
    /// The namespaces of the entity store that the app's PHP may use; absent: all of them for the
    /// only app of a file, none for one of several.
    #[schemars(extend("x-former" = ["namespaces"]))]
    pub(crate) kv_namespaces: Option<Vec<AppName>>,
    /// What is served for a folder: the first of these files that is in it.
    #[schemars(extend("x-alias" = ["DirectoryIndex"]))]
    pub(crate) index: Vec<FileName>,
    /// The script that gets every request no file answers: its path, `"none"`, or `"auto"` for
    /// `/index.php` when the root has one.
    #[schemars(extend("x-alias" = ["try_files", "FallbackResource"]))]
    pub(crate) front_controller: PlainText,
    /// Rules that change the path of a request before files are looked for.
    #[schemars(extend("x-alias" = ["RewriteRule", "return", "Redirect"]))]
    pub(crate) rewrite: Vec<Rewrite>,
    /// Rules that change the headers of responses.
    #[schemars(extend("x-alias" = ["add_header", "Header"]))]
    pub(crate) headers: Vec<HeaderRule>,
    /// Pages that are put together from scripts, upstreams and files.
    #[schemars(extend("x-alias" = ["ssi", "subrequest", "content_by_lua"]))]
    pub(crate) compose: Vec<Compose>,
    /// What is fetched from upstreams before a script runs.
    pub(crate) prefetch: Vec<Prefetch>,
    /// Routes that another server answers.
    #[schemars(extend("x-alias" = ["proxy_pass", "ProxyPass", "reverse_proxy"]))]
    pub(crate) proxy: Vec<Proxy>,
    /// Answers that are kept: `"off"`, `"auto"`, `"on"`, or a table.
    #[schemars(extend("x-alias" = ["fastcgi_cache", "proxy_cache", "cache"]))]
    pub(crate) page_cache: PageCacheEntry,
    /// Paths that are answered with 404, with everything below them, in every case of letters. A
    /// pattern holds against the path of the request, the path after rewrites, and the file or
    /// script that is found, an index among them.
    #[schemars(extend("x-alias" = ["Deny", "Require", "allow"]))]
    pub(crate) deny: Vec<PathPattern>,
    /// Folders in which, and below which, no script is run: those that visitors upload to. Requests
    /// for one are answered with 404.
    #[schemars(extend("x-alias" = ["engine", "RemoveHandler", "php_flag"]))]
    pub(crate) no_php_in: Vec<PathPattern>,
    /// Pages for errors that the server itself answers, by status or class (`404`, `5xx`): files,
    /// relative to the root.
    #[schemars(extend("propertyNames" = { "format": StatusClass::NAME }, "x-alias" = ["error_page", "ErrorDocument"]))]
    pub(crate) error_pages: BTreeMap<String, FilePath>,
    /// How files are served.
    #[serde(rename = "static")]
    pub(crate) static_files: StaticFiles,
    /// Files that PHP may have the server send.
    pub(crate) sendfile: Sendfile,
    /// Whether texts of a kilobyte and more that PHP makes are compressed for clients that take
    /// brotli, zstd or gzip, unless PHP has done that. Files have compressed siblings instead.
    #[schemars(extend("x-alias" = ["gzip", "brotli", "encode", "mod_deflate", "SetOutputFilter"]))]
    pub(crate) compress: bool,
    /// The user that PHP runs as; absent: the file's.
    pub(crate) user: Option<PlainText>,
    /// The group that PHP runs as; absent: the file's.
    pub(crate) group: Option<PlainText>,
    /// Limits of the app's requests.
    pub(crate) limits: RequestLimits,
    /// The app's workers.
    pub(crate) pool: Pool,
    /// The app's PHP settings.
    pub(crate) php: Php,
    /// The app's logs.
    pub(crate) log: Log,
}

/// A rule that changes the path of a request, or answers it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewrite {
    /// A regular expression; it is held against the decoded path, below the app's prefix.
    #[serde(rename = "match")]
    pub(crate) pattern: Expression,
    /// The new path, or the address of a redirect. `$1` and `${name}` stand for what the groups
    /// matched, `$$` for a dollar. The query stays unless this has one; a final `?` drops it.
    #[serde(default)]
    pub(crate) to: Option<PlainText>,
    /// Answer with this status: a redirect (301, 302, 303, 307, 308) to `to`, or an error without
    /// `to`. Absent: go on inside with the new path.
    #[serde(default)]
    #[schemars(range(min = 301, max = 599))]
    pub(crate) status: Option<u16>,
    /// Which requests the rule is for.
    #[serde(default, rename = "when")]
    #[schemars(extend("x-alias" = ["RewriteCond", "if"]))]
    pub(crate) when: RewriteWhen,
    /// Whether later rules are skipped once this one has matched.
    #[serde(default = "yes")]
    pub(crate) last: bool,
}

/// Which requests a rule is for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RewriteWhen {
    /// All.
    #[default]
    Always,
    /// Those whose path is neither a file nor a folder.
    Missing,
    /// Those whose path is a file or a folder.
    Exists,
}

/// A rule that changes response headers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HeaderRule {
    /// The paths whose responses are meant; absent: all.
    pub(crate) path: Option<PathPattern>,
    /// Headers that get this value, whatever the app said.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) set: BTreeMap<String, HeaderValue>,
    /// Headers that are added to those of the app.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) add: BTreeMap<String, HeaderValue>,
    /// Headers that are taken away, before `set` and `add`.
    #[schemars(extend("x-alias" = ["unset", "fastcgi_hide_header"]))]
    pub(crate) remove: Vec<HeaderName>,
}

/// How files are served.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StaticFiles {
    /// Which symbolic links are followed.
    #[schemars(extend("x-alias" = ["disable_symlinks", "FollowSymLinks", "SymLinksIfOwnerMatch"]))]
    pub(crate) symlinks: Symlinks,
    /// Folders outside of the root that links may lead into when `symlinks` is `"never"`.
    pub(crate) symlink_targets: Vec<FilePath>,
    /// Whether `style.css.br` (or `.zst`, `.gz`) is sent for `style.css` to clients that take it.
    #[schemars(extend("x-alias" = ["gzip_static", "brotli_static"]))]
    pub(crate) precompressed: bool,
    /// Content types by file extension, beside those that are known.
    #[schemars(extend("propertyNames" = { "format": FileExtension::NAME }, "x-alias" = ["types", "AddType"]))]
    pub(crate) mime: BTreeMap<String, HeaderValue>,
    /// The `Cache-Control` of files; absent: none.
    #[schemars(extend("x-alias" = ["expires", "ExpiresDefault"]))]
    pub(crate) cache_control: Option<HeaderValue>,
    /// Names with a leading dot that are served; every other one is answered with 404.
    #[schemars(extend("x-former" = ["dot_names"]))]
    pub(crate) allow_dotfiles: Vec<FileName>,
    /// Files that are served although their names are those of databases, dumps, backups, logs,
    /// keys or sources; every other such file is answered with 404.
    pub(crate) allow_private: Vec<PathPattern>,
}

/// Files that PHP may have the server send.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sendfile {
    /// Folders, besides the root, whose files `X-Sendfile` may name.
    #[schemars(extend("x-alias" = ["XSendFilePath"]))]
    pub(crate) roots: Vec<FilePath>,
    /// Folders behind the internal URLs that `X-Accel-Redirect` may name: `"/protected/"` to a
    /// folder.
    #[schemars(extend("propertyNames" = { "format": UrlPath::NAME }, "x-alias" = ["internal", "alias"]))]
    pub(crate) accel: BTreeMap<String, FilePath>,
}

impl Default for App {
    fn default() -> Self {
        let index = ["index.php", "index.html"];
        App {
            root: FilePath::default(),
            hosts: OneOrMany::Many(Vec::new()),
            path: UrlPath("/".to_owned()),
            mode: Mode::default(),
            worker: Worker::default(),
            tasks: Tasks::default(),
            kv_namespaces: None,
            index: index.map(|name| FileName(name.to_owned())).to_vec(),
            front_controller: PlainText("auto".to_owned()),
            rewrite: Vec::new(),
            headers: Vec::new(),
            compose: Vec::new(),
            prefetch: Vec::new(),
            proxy: Vec::new(),
            page_cache: PageCacheEntry::default(),
            deny: Vec::new(),
            no_php_in: Vec::new(),
            error_pages: BTreeMap::new(),
            static_files: StaticFiles::default(),
            sendfile: Sendfile::default(),
            compress: false,
            user: None,
            group: None,
            limits: RequestLimits::default(),
            pool: Pool::default(),
            php: Php::default(),
            log: Log::default(),
        }
    }
}

impl Default for StaticFiles {
    fn default() -> Self {
        StaticFiles {
            symlinks: Symlinks::default(),
            symlink_targets: Vec::new(),
            precompressed: true,
            mime: BTreeMap::new(),
            cache_control: None,
            allow_dotfiles: vec![FileName(".well-known".to_owned())],
            allow_private: Vec::new(),
        }
    }
}

fn yes() -> bool {
    true
}
