//! Which file, script or answer a path leads to.
//!
//! Called once a request with the decoded, normalised path. The order is what people know from
//! nginx and `.htaccess`: deny, rewrite, another server, composed page, file, folder index, script with PATH_INFO,
//! front controller. In worker mode whatever no file answers goes to the script that stays. Invariant: a
//! script is run only if it exists below the root and carries a PHP suffix itself, or is the
//! configured worker script; a file with a PHP suffix is never sent.

use crate::app::App;
use crate::compose::Composed;
use crate::proxy::Proxied;
use crate::reason::Reason;
use outboard_config::{self as config, Rewrite, RewriteWhen};
use outboard_static_files::{Entry, ForbiddenReason, Lookup};
use std::rc::Rc;

/// Where a request goes.
#[derive(Debug)]
pub(crate) enum Route {
    /// A static file.
    File(Rc<Entry>),
    /// A PHP script.
    Script(Script),
    /// Another server.
    Upstream(Proxied),
    /// A page made of parts.
    Page(Composed),
    /// Elsewhere.
    Redirect { status: u16, location: Vec<u8> },
    /// An error status that a rewrite rule asks for.
    Status(u16),
    /// Nowhere; with what the operator can do about it.
    Refuse(Reason, Option<&'static str>),
}

/// A script and what of the request's path is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its path below the app's root, with a slash first; in worker mode always
    /// [`App::WORKER_NAME`].
    pub(crate) path: Vec<u8>,
    /// What follows it.
    pub(crate) path_info: Vec<u8>,
    /// The query of a rewrite rule instead of the request's.
    pub(crate) query: Option<Vec<u8>>,
    /// Another script sent us here (`X-Accel-Redirect`): a GET without a body, whatever the
    /// request was.
    pub(crate) internal: bool,
}

/// Finds the route of `path`, which starts with the app's prefix. `query` is the request's own.
pub(crate) fn find(app: &App, path: &[u8], query: Option<&[u8]>, now_ms: u64) -> Route {
    let below = app.below_prefix(path);
    if app.config.deny.iter().any(|pattern| pattern.matches(below)) {
        return Route::Refuse(Reason::Denied, None);
    }
    // As nginx's `internal` locations: only PHP's word leads there.
    if app.sendfile.accel.iter().any(|(prefix, _)| below.starts_with(prefix.as_bytes())) {
        return Route::Refuse(Reason::NotFound, None);
    }
    let rewritten = match rewrite(app, below, query, now_ms) {
        Rewritten::Unchanged => return resolve(app, below, path, query, now_ms),
        Rewritten::Answer(route) => return route,
        Rewritten::Path(rewritten) => rewritten,
    };
    let mut route = resolve(app, &rewritten.path, path, query, now_ms);
    if let Route::Upstream(proxied) = &mut route {
        let target = encoded(&rewritten.path);
        let query = rewritten.query.as_deref().or(query);
        proxied.rewritten = Some(with_query(target, query));
        return route;
    }
    if rewritten.query.is_some() {
        match &mut route {
            Route::Script(script) => script.query = rewritten.query,
            Route::Page(composed) => composed.query = rewritten.query,
            _ => {}
        }
    }
    route
}

struct NewPath {
    path: Vec<u8>,
    query: Option<Vec<u8>>,
}

enum Rewritten {
    Unchanged,
    Path(NewPath),
    Answer(Route),
}

fn rewrite(app: &App, below: &[u8], own_query: Option<&[u8]>, now_ms: u64) -> Rewritten {
    let mut new: Option<NewPath> = None;
    for rule in &app.config.rewrites {
        let path = new.as_ref().map_or(below, |new| &new.path);
        if !applies(app, rule, path, now_ms) {
            continue;
        }
        match rule.apply(path) {
            None => continue,
            Some(config::Rewritten::To { path, query }) => {
                let query = query.or_else(|| new.and_then(|new| new.query));
                new = Some(NewPath { path, query });
            }
            Some(config::Rewritten::Redirect { status, location, query }) => {
                let location = with_query(location, query.as_deref().or(own_query));
                return Rewritten::Answer(Route::Redirect { status, location });
            }
            Some(config::Rewritten::Status(status)) => {
                return Rewritten::Answer(Route::Status(status));
            }
        }
        if rule.last {
            break;
        }
    }
    new.map_or(Rewritten::Unchanged, Rewritten::Path)
}

fn with_query(mut location: Vec<u8>, query: Option<&[u8]>) -> Vec<u8> {
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    location
}

fn applies(app: &App, rule: &Rewrite, path: &[u8], now_ms: u64) -> bool {
    match rule.when {
        RewriteWhen::Always => true,
        RewriteWhen::Missing => matches!(app.files.lookup(path, now_ms), Lookup::NotFound),
        RewriteWhen::Exists => !matches!(app.files.lookup(path, now_ms), Lookup::NotFound),
    }
}

fn resolve(app: &App, below: &[u8], asked: &[u8], query: Option<&[u8]>, now_ms: u64) -> Route {
    let mut proxies = app.config.proxies.iter();
    if let Some(number) = proxies.position(|to| !to.is_internal && to.path.matches(below)) {
        return Route::Upstream(Proxied { number, rewritten: None, is_ordered: false });
    }
    if let Some(page) = app.config.compose.iter().position(|page| page.path.matches(below)) {
        return Route::Page(Composed { page, path: below.to_vec(), query: None });
    }
    if app.worker_script.is_some() {
        return resolve_resident(app, below, asked, query, now_ms);
    }
    match app.files.lookup(below, now_ms) {
        Lookup::File(entry) => Route::File(entry),
        Lookup::Script => script(below, b""),
        Lookup::Directory if below.ends_with(b"/") => folder(app, below, now_ms),
        Lookup::Directory => Route::Redirect { status: 301, location: with_slash(asked, query) },
        Lookup::NotFound => match app.files.split_script(below, now_ms) {
            Some((path, path_info)) => script(path, path_info),
            None => front_controller(app, Reason::NotFound),
        },
        Lookup::Forbidden(reason) => forbidden(reason),
        Lookup::Error(_) => Route::Refuse(Reason::ReadFailed, None),
    }
}

fn folder(app: &App, below: &[u8], now_ms: u64) -> Route {
    for index in &app.config.index {
        let path = [below, index.as_bytes()].concat();
        match app.files.lookup(&path, now_ms) {
            Lookup::File(entry) => return Route::File(entry),
            Lookup::Script => return script(&path, b""),
            Lookup::Forbidden(reason) => return forbidden(reason),
            _ => {}
        }
    }
    front_controller(app, Reason::NotAFile)
}

/// In worker mode.
fn resolve_resident(
    app: &App,
    below: &[u8],
    asked: &[u8],
    query: Option<&[u8]>,
    now_ms: u64,
) -> Route {
    match app.files.lookup(below, now_ms) {
        Lookup::File(entry) => Route::File(entry),
        Lookup::Script | Lookup::NotFound => script(App::WORKER_NAME, b""),
        Lookup::Directory => match static_index(app, below, now_ms) {
            Some(entry) if below.ends_with(b"/") => Route::File(entry),
            Some(_) => Route::Redirect { status: 301, location: with_slash(asked, query) },
            None => script(App::WORKER_NAME, b""),
        },
        Lookup::Forbidden(reason) => forbidden(reason),
        Lookup::Error(_) => Route::Refuse(Reason::ReadFailed, None),
    }
}

/// The folder's first index, unless that is a script.
fn static_index(app: &App, below: &[u8], now_ms: u64) -> Option<Rc<Entry>> {
    let slash: &[u8] = if below.ends_with(b"/") { b"" } else { b"/" };
    let mut found = app.config.index.iter().filter_map(|index| {
        let path = [below, slash, index.as_bytes()].concat();
        match app.files.lookup(&path, now_ms) {
            Lookup::File(entry) => Some(Some(entry)),
            Lookup::Script => Some(None),
            _ => None,
        }
    });
    found.next().flatten()
}

fn front_controller(app: &App, otherwise: Reason) -> Route {
    match &app.config.front_controller {
        Some(path) => script(path.as_bytes(), b""),
        None => Route::Refuse(otherwise, None),
    }
}

fn script(path: &[u8], path_info: &[u8]) -> Route {
    Route::Script(Script {
        path: path.to_vec(),
        path_info: path_info.to_vec(),
        query: None,
        internal: false,
    })
}

/// The location of a folder asked for without its slash.
fn with_slash(path: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    let mut location = encoded(path);
    location.push(b'/');
    with_query(location, query)
}

/// A path that was decoded: what is not plain in a URL is encoded again.
fn encoded(path: &[u8]) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut location = Vec::with_capacity(path.len() + 16);
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            location.push(byte);
        } else {
            let digits = [b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            location.extend_from_slice(&digits);
        }
    }
    location
}

fn forbidden(reason: ForbiddenReason) -> Route {
    let (reason, hint) = match reason {
        ForbiddenReason::DotFile => (Reason::DotFile, reason.hint()),
        ForbiddenReason::Symlink
        | ForbiddenReason::SymlinkEscape
        | ForbiddenReason::SymlinkOwner
        | ForbiddenReason::SymlinkLoop => (Reason::SymlinkEscape, reason.hint()),
        ForbiddenReason::PhpSource => (Reason::PhpSource, reason.hint()),
        ForbiddenReason::Unreadable => (Reason::Unreadable, reason.hint()),
        ForbiddenReason::Traversal => (Reason::BadPath, reason.hint()),
        ForbiddenReason::NotRegular => (Reason::NotAFile, reason.hint()),
    };
    Route::Refuse(reason, hint)
}
