//! An application and how requests map to its files.

use super::access::{self, Access};
use super::compose::{self, Compose, Prefetch};
use super::condition::{self, Condition, Names};
use super::context::Context;
use super::debug::Debug;
use super::deny::Deny;
use super::headers::{self, HeaderRule};
use super::maintenance::{self, Maintenance};
use super::page_cache::{self, PageCache};
use super::rate_limit::{self, RateLimit};
use super::rewrite::{self, Rewrite};
use super::sandbox::{self, Sandbox};
use super::scripts::Scripts;
use super::worker::{self, Mode};
use super::{log, php, pool, process, proxy, tasks};
use crate::diagnostic::Kind;
use crate::disk::Found;
use crate::raw::{self, Limits, Log, Php, Pool, Process, Proxy, Sendfile, Tasks};
use crate::scalar::{Fault, FileExtension, HostPattern, PathPattern, PlainText};
use outboard_static_files::RootOptions;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An application.
#[derive(Clone, Debug)]
pub struct App {
    /// Its name in logs and metrics.
    pub name: String,
    /// Its host names; empty: every host.
    pub hosts: Vec<HostPattern>,
    /// URL path prefix: `/`, or a path without a trailing slash, such as `/blog`.
    pub path_prefix: String,
    /// Document root; absolute, exists. Symbolic links in it are not resolved, so that a link to a
    /// new release takes effect.
    pub root: PathBuf,
    /// How PHP handles its requests.
    pub mode: Mode,
    /// Background tasks; `None`: disabled.
    pub tasks: Option<Tasks>,
    /// Programs that run next to the workers, by name.
    pub processes: BTreeMap<String, Process>,
    /// Namespaces of the entity store that its PHP may use; `None`: all.
    pub kv_namespaces: Option<Vec<String>>,
    /// Index files of a directory; the first that exists is served.
    pub index: Vec<String>,
    /// URL path, below the prefix, of the script for requests that match no file.
    pub front_controller: Option<String>,
    /// What rules require of requests.
    pub conditions: Vec<Condition>,
    /// Rules that change paths before the file lookup.
    pub rewrites: Vec<Rewrite>,
    /// Rules that change the headers of responses.
    pub headers: Vec<HeaderRule>,
    /// Composed pages; the first whose path matches is used.
    pub compose: Vec<Compose>,
    /// Upstream requests sent before a script runs.
    pub prefetch: Vec<Prefetch>,
    /// Proxied routes; the first whose path matches is used.
    pub proxies: Vec<Proxy>,
    /// The page cache; `None`: disabled.
    pub page_cache: Option<PageCache>,
    /// Which clients may request which paths, and how often.
    pub access: Access,
    /// When clients get a page in its place; `None`: never.
    pub maintenance: Option<Maintenance>,
    /// Whose requests get a worker with Xdebug.
    pub debug: Debug,
    /// Rate limits by keys that scripts choose, by name.
    pub rate_limits: BTreeMap<String, RateLimit>,
    /// Denied paths, and directories in which no script runs.
    pub deny: Deny,
    /// Whether clients without a valid certificate are refused.
    pub requires_client_certificate: bool,
    /// Pages for errors of the server itself, by status.
    pub error_pages: BTreeMap<u16, PathBuf>,
    /// Static files.
    pub static_files: RootOptions,
    /// Memory for static files that are compressed on demand; `None`: they are not.
    pub compressed_files_bytes: Option<usize>,
    /// Directories whose files are listed.
    pub autoindex: Vec<PathPattern>,
    /// Files that are served although they have private names.
    pub allow_private: Vec<PathPattern>,
    /// Files that PHP can let the server send.
    pub sendfile: Sendfile,
    /// Whether text responses of PHP, composed pages and those of other servers are compressed.
    pub compress: bool,
    /// Limits on its requests and on connections.
    pub limits: Limits,
    /// Its workers.
    pub pool: Pool,
    /// Its PHP settings.
    pub php: Php,
    /// What its PHP is confined to; `None`: it is not, except by its user.
    pub sandbox: Option<Sandbox>,
    /// Its logs.
    pub log: Log,
    /// User that PHP runs as; `None`: the server's own.
    pub user: Option<String>,
    /// Group that PHP runs as; `None`: the primary group of the user.
    pub group: Option<String>,
}

pub(super) fn apps(raw: &raw::File, context: &mut Context<'_>) -> Vec<App> {
    if raw.app.is_empty() && context.diagnostics.is_empty() {
        let fault = Fault::new("there is no app to serve")
            .hint("add a line [app.site] and below it root = \"public\"");
        context.key(&["app"], Kind::MissingKey, fault);
    }
    let mut apps: Vec<App> = Vec::new();
    for (name, one) in &raw.app {
        let app = app(raw, name, one, context);
        report_duplicates(&apps, &app, context);
        check_direct(raw, &app, context);
        apps.push(app);
    }
    process::check_number(&apps, context);
    apps
}

fn app(file: &raw::File, name: &str, raw: &raw::App, context: &mut Context<'_>) -> App {
    let base = ["app", name];
    let at = |key: &'static str| [&base[..], &[key]].concat();
    let root = context.directory(&at("root"), &raw.root);
    let php = php::php(&raw.php, &at("php"), context);
    let mode = worker::mode(raw, &root, &php, &base, context);
    let is_worker = matches!(mode, Mode::Worker(_));
    let scripts = Scripts { root: &root, php: &php, is_worker };
    let (conditions, names) = condition::conditions(&raw.condition, &base, context);
    let text = |own: &Option<PlainText>, general: &Option<_>| {
        own.as_ref().or(general.as_ref()).map(|PlainText(text)| text.clone())
    };
    App {
        name: name.to_owned(),
        hosts: raw.hosts.as_slice().to_vec(),
        path_prefix: prefix(&raw.path.0),
        compose: compose::compose(raw, &root, &mode, &base, context),
        prefetch: compose::prefetch(raw, &base, context),
        tasks: tasks::tasks(&raw.tasks, &mode, &base, context),
        processes: process::processes(raw, &root, &php, &base, context),
        kv_namespaces: namespaces(file, raw),
        proxies: proxy::proxies(&raw.proxy, &names, &base, context),
        mode,
        conditions,
        index: raw.index.iter().map(|name| name.0.clone()).collect(),
        front_controller: front_controller(raw, &scripts, &at("front_controller"), context),
        rewrites: rewrites(raw, &names, &at("rewrite"), context),
        headers: headers::rules(raw, &names, &at("headers"), context),
        page_cache: page_cache::page_cache(&raw.page_cache, name, &at("page_cache"), context),
        access: access::access(raw, &scripts, &names, &base, context),
        maintenance: maintenance::maintenance(&raw.maintenance, &root, &at("maintenance"), context),
        debug: debug(raw, is_worker, &at("debug"), context),
        rate_limits: rate_limit::of_scripts(&raw.rate_limits, &base, context),
        deny: deny(raw, &base, context),
        requires_client_certificate: raw.require_client_certificate,
        error_pages: error_pages(raw, &root, &at("error_pages"), context),
        static_files: static_files(&raw.static_files, &php.extensions, &at("static"), context),
        compressed_files_bytes: compressed_files(raw),
        autoindex: autoindex(raw, is_worker, &at("static"), context),
        allow_private: raw.static_files.allow_private.clone(),
        sendfile: sendfile(&raw.sendfile, &at("sendfile"), context),
        compress: raw.compress,
        limits: file.limits.of_app(&raw.limits),
        pool: pool::pool(&raw.pool, &at("pool"), context),
        log: log::log(&raw.log, &at("log"), context),
        sandbox: sandbox::sandbox(raw.sandbox.as_ref(), &php, &at("sandbox"), context),
        user: text(&raw.user, &file.user),
        group: text(&raw.group, &file.group),
        php,
        root,
    }
}

/// Direct connections need an app that is alone, and whose requests the gateway need not see.
fn check_direct(file: &raw::File, app: &App, context: &mut Context<'_>) {
    if !matches!(&app.mode, Mode::Worker(worker) if worker.direct) {
        return;
    }
    let of_file = [
        (file.app.len() > 1, "`app`"),
        (context.places.wrote(&["tracing"]), "`tracing`"),
        (!file.trusted_proxies.is_empty(), "`trusted_proxies`"),
        (!file.redirect.is_empty(), "`redirect`"),
    ];
    let of_file = of_file.into_iter().find_map(|(excludes, key)| excludes.then(|| key.to_owned()));
    if let Some(key) = app.excludes_direct().map(|key| format!("`{key}`")).or(of_file) {
        let fault = Fault::new(format!("workers cannot respond directly, because of {key}"))
            .hint("remove `direct`, or that: the gateway has to see each request for it");
        context.value(&["app", &app.name, "worker", "direct"], Kind::Conflict, fault);
    }
}

/// A program that starts a server has connections of its own.
fn debug(raw: &raw::App, is_worker: bool, place: &[&str], context: &mut Context<'_>) -> Debug {
    Debug::of(&raw.debug, is_worker && raw.worker.starts_server, place, context)
}

/// With several apps, each has no namespaces unless it names them.
fn namespaces(file: &raw::File, raw: &raw::App) -> Option<Vec<String>> {
    let named = raw.kv_namespaces.as_ref();
    let named = named.map(|names| names.iter().map(|name| name.0.clone()).collect());
    named.or_else(|| (file.app.len() > 1).then(Vec::new))
}

/// Without the trailing slash, unless it is `/`.
fn prefix(written: &str) -> String {
    match written.trim_end_matches('/') {
        "" => "/".to_owned(),
        prefix => prefix.to_owned(),
    }
}

fn front_controller(
    raw: &raw::App,
    scripts: &Scripts<'_>,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<String> {
    match raw.front_controller.0.as_str() {
        "none" => None,
        "auto" => {
            let found = context.disk.look(&scripts.root.join("index.php"));
            matches!(found, Ok(Found::File { .. })).then(|| "/index.php".to_owned())
        }
        written => {
            let hint = "write \"auto\", \"none\" or a path such as \"/index.php\"";
            Some(scripts.find_or(written, place, hint, context))
        }
    }
}

fn deny(raw: &raw::App, base: &[&str], context: &mut Context<'_>) -> Deny {
    Deny::new(&raw.deny, &raw.no_php_in).unwrap_or_else(|fault| {
        context.value(&[base, &["deny"]].concat(), Kind::BadValue, fault);
        Deny::default()
    })
}

fn rewrites(
    raw: &raw::App,
    names: &Names,
    place: &[&str],
    context: &mut Context<'_>,
) -> Vec<Rewrite> {
    let one = |(index, rule): (usize, &raw::Rewrite)| {
        let step = index.to_string();
        rewrite::rule(rule, names, &[place, &[step.as_str()]].concat(), context)
    };
    raw.rewrite.iter().enumerate().filter_map(one).collect()
}

/// A class (`5xx`) applies to those of its statuses without a page of their own.
fn error_pages(
    raw: &raw::App,
    root: &Path,
    place: &[&str],
    context: &mut Context<'_>,
) -> BTreeMap<u16, PathBuf> {
    let mut pages = BTreeMap::new();
    let mut classes = Vec::new();
    for (status, written) in &raw.error_pages {
        let page = root.join(written.0.trim_start_matches('/'));
        // If the root is missing, report only that.
        if context.disk.look(root).is_ok() {
            let place = [place, &[status.as_str()]].concat();
            context.look_for_file(&place, format!("/{}", written.0).as_ref(), &page);
        }
        match status.parse() {
            Ok(status) => drop(pages.insert(status, page)),
            Err(_) => classes.push((if status == "4xx" { 400 } else { 500 }, page)),
        }
    }
    for (first, page) in classes {
        for status in first..first + 100 {
            pages.entry(status).or_insert_with(|| page.clone());
        }
    }
    pages
}

fn static_files(
    raw: &raw::StaticFiles,
    php_suffixes: &[String],
    place: &[&str],
    context: &mut Context<'_>,
) -> RootOptions {
    let mime = |(extension, kind): (&String, &crate::scalar::HeaderValue)| {
        (FileExtension::bare(extension).to_ascii_lowercase(), kind.0.clone())
    };
    let headers = [("Cache-Control", &raw.cache_control)];
    RootOptions {
        symlinks: raw.symlinks,
        symlink_targets: directories(
            &raw.symlink_targets,
            &[place, &["symlink_targets"]].concat(),
            context,
        ),
        htaccess: raw.htaccess,
        precompressed: raw.precompressed,
        mime_overrides: raw.mime.iter().map(mime).collect(),
        headers: headers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?.0.clone())))
            .collect(),
        allow_dotfiles: raw.allow_dotfiles.iter().map(|name| name.0.clone()).collect(),
        php_suffixes: php_suffixes.to_vec(),
        ..RootOptions::default()
    }
}

/// A worker script handles each request without a file.
fn autoindex(
    raw: &raw::App,
    is_worker: bool,
    place: &[&str],
    context: &mut Context<'_>,
) -> Vec<PathPattern> {
    let listed = &raw.static_files.autoindex;
    let place = [place, &["autoindex"]].concat();
    if is_worker && !listed.is_empty() {
        let fault = Fault::new("in worker mode the worker script handles requests for directories")
            .hint("write it in an app of its own for the files, with a `path`");
        context.value(&place, Kind::Conflict, fault);
    }
    listed.clone()
}

fn compressed_files(raw: &raw::App) -> Option<usize> {
    let memory = usize::try_from(raw.static_files.compressed_memory.0).ok()?;
    (raw.compress && memory > 0).then_some(memory)
}

fn sendfile(written: &Sendfile, place: &[&str], context: &mut Context<'_>) -> Sendfile {
    let roots = directories(&written.roots, &[place, &["roots"]].concat(), context);
    let mut accel = BTreeMap::new();
    for (url, directory) in &written.accel {
        let directory = context.directory(&[place, &["accel", url.as_str()]].concat(), directory);
        accel.insert(format!("{}/", url.trim_end_matches('/')), directory);
    }
    Sendfile { roots, accel }
}

fn directories(written: &[PathBuf], place: &[&str], context: &mut Context<'_>) -> Vec<PathBuf> {
    let mut one = |(index, directory): (usize, &PathBuf)| {
        let step = index.to_string();
        context.directory(&[place, &[step.as_str()]].concat(), directory)
    };
    written.iter().enumerate().map(&mut one).collect()
}

/// Two apps must not claim the same host and path: which one wins would be undefined.
fn report_duplicates(earlier: &[App], app: &App, context: &mut Context<'_>) {
    let claims = |app: &App| match app.hosts.as_slice() {
        [] => vec![None],
        hosts => hosts.iter().cloned().map(Some).collect(),
    };
    let own = claims(app);
    for other in earlier.iter().filter(|other| other.path_prefix == app.path_prefix) {
        let Some(shared) = claims(other).into_iter().find(|claim| own.contains(claim)) else {
            continue;
        };
        let host = match shared {
            None => "every host".to_owned(),
            Some(HostPattern::Exact(name)) => format!("`{name}`"),
            Some(HostPattern::Wildcard(parent)) => format!("`*.{parent}`"),
        };
        let message = format!(
            "the apps `{}` and `{}` both serve {host} at `{}`",
            other.name, app.name, app.path_prefix
        );
        let line = context.line_of(&["app", &other.name]);
        let hint = format!("change `hosts` or `path` of one; the other is `{}`{line}", other.name);
        context.key(&["app", &app.name], Kind::Duplicate, Fault::new(message).hint(hint));
    }
}

#[cfg(test)]
mod tests;
