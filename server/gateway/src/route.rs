//! [`Route`]: the file, script or response that a path leads to.
//!
//! Found once per request, for the decoded, normalized path. The order is that of nginx and
//! `.htaccess`: deny, rewrite, another server, composed page, file, directory index, script with
//! PATH_INFO, front controller. In worker mode every request without a file goes to the worker
//! script. Invariants: a script is run only if it exists below the root and carries a PHP suffix
//! itself, or is the configured worker script; a file with a PHP suffix is never sent; a path in
//! `deny` is neither run nor sent, in any spelling, and neither by rewriting, by an index nor by
//! the front controller, nor by a symbolic link: the rules of its target hold as well.

mod classes;
mod directory;
mod findings;
mod readings;
mod rewritten;

use crate::app::{App, below_prefix};
pub(crate) use findings::Findings;
use outboard_config as config;
use outboard_http1::{encode_path, with_query};
use outboard_log::Reason;
use outboard_static_files::{ColdLookup, Entry, ForbiddenReason, Lookup, Root};
pub(crate) use readings::Readings;
use rewritten::Rewritten;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) enum Route {
    /// A static file.
    File(Rc<Entry>),
    /// A PHP script; not boxed, since a request to one allocates nothing.
    Script(Script),
    /// Another server.
    Upstream(Proxied),
    /// A composed page.
    Page(Composed),
    /// The listing of a directory, whose path below the prefix ends with a slash.
    Listing(PathBytes),
    /// A redirect.
    Redirect { status: u16, location: Vec<u8> },
    /// The status of a rewrite rule, and its text.
    Status(u16, Option<Arc<str>>),
    /// A refusal, with a hint for the administrator.
    Refuse(Reason, Option<Cow<'static, str>>),
}

/// A path; an ordinary one is not on the heap.
pub(crate) type PathBytes = SmallVec<[u8; 64]>;

/// A script and its part of the request's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its path below the app's root, with a slash first; in worker mode always
    /// [`App::WORKER_NAME`].
    pub(crate) path: PathBytes,
    /// The rest of the path.
    pub(crate) path_info: PathBytes,
    /// The query of a rewrite rule instead of the request's.
    pub(crate) query: Option<Vec<u8>>,
    /// Whether another script led here (`X-Accel-Redirect`): then it is a GET without a body.
    pub(crate) internal: bool,
}

/// The upstream of a request, and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxied {
    /// The index in the app's `proxies`.
    pub(crate) number: usize,
    /// Path and query after a rewrite; `None` for those of the request as they were received.
    pub(crate) rewritten: Option<Vec<u8>>,
    /// Whether a script led here: then it is a GET or HEAD without a body.
    pub(crate) is_internal: bool,
}

/// A composed page and its part of the request.
#[derive(Debug)]
pub(crate) struct Composed {
    /// The index in the app's pages.
    pub(crate) page: usize,
    /// The path below the app's prefix.
    pub(crate) path: Vec<u8>,
    /// The query of a rewrite rule instead of the request's.
    pub(crate) query: Option<Vec<u8>>,
}

/// The result of a lookup that a search would have had to wait for, and its path.
pub(crate) type Looked = (Vec<u8>, Lookup);

/// The lookup that a search would have to wait for.
type Cold = Box<ColdLookup>;

/// Finds the route of a path, which starts with the app's prefix, and its query, the request's own. Adds the
/// access rules of the paths that it leads to to `findings`.
///
/// # Errors
/// A lookup that would have to wait for a disk. With its result in `looked` the search gets further.
pub(crate) fn find(
    app: &App,
    (path, query): (&[u8], Option<&[u8]>),
    now_ms: u64,
    (looked, findings): (&[Looked], &Findings),
) -> Result<Route, Cold> {
    let (app, files) = (&app.config, &app.files);
    let leads_to_denied = Cell::new(false);
    Search { app, files, full_path: path, query, now_ms, looked, findings, leads_to_denied }.find()
}

/// The search for a route.
struct Search<'a> {
    app: &'a config::App,
    files: &'a Root,
    /// The requested path, with the app's prefix.
    full_path: &'a [u8],
    query: Option<&'a [u8]>,
    now_ms: u64,
    looked: &'a [Looked],
    findings: &'a Findings,
    /// Whether a path was looked up that has a link to a denied one.
    leads_to_denied: Cell<bool>,
}

impl Search<'_> {
    fn find(&self) -> Result<Route, Cold> {
        let route = self.search()?;
        match self.leads_to_denied.get() {
            true => Ok(Route::Refuse(Reason::Denied, Some("a symbolic link leads there".into()))),
            false => Ok(route),
        }
    }

    fn search(&self) -> Result<Route, Cold> {
        let below = below_prefix(self.app, self.full_path);
        if self.app.deny.denies(below) {
            return Ok(Route::Refuse(Reason::Denied, None));
        }
        // As nginx's `internal` locations: only PHP can lead there.
        let mut internal = self.app.sendfile.accel.keys();
        if internal.any(|prefix| below.starts_with(prefix.as_bytes())) {
            return Ok(Route::Refuse(Reason::NotFound, None));
        }
        let rewritten = match self.rewrite(below)? {
            Rewritten::Unchanged => return self.resolve(below),
            Rewritten::Route(route) => return Ok(route),
            Rewritten::Path(rewritten) => rewritten,
        };
        if self.denies(&rewritten.path) {
            return Ok(Route::Refuse(Reason::Denied, None));
        }
        let mut route = self.resolve(&rewritten.path)?;
        if let Route::Upstream(proxied) = &mut route {
            let target = encode_path(&rewritten.path);
            let query = rewritten.query.as_deref().or(self.query);
            proxied.rewritten = Some(with_query(target, query));
            return Ok(route);
        }
        if rewritten.query.is_some() {
            match &mut route {
                Route::Script(script) => script.query = rewritten.query,
                Route::Page(composed) => composed.query = rewritten.query,
                _ => {}
            }
        }
        Ok(route)
    }

    /// Whether a path that the request leads to is denied. Its access rules hold for the request.
    fn denies(&self, path: &[u8]) -> bool {
        self.findings.add_rules(&self.app.access, path);
        self.app.deny.denies(path)
    }

    fn lookup(&self, path: &[u8]) -> Result<Lookup, Cold> {
        let found = match self.looked.iter().find(|(looked, _)| looked == path) {
            Some((_, found)) => found.clone(),
            None => self.files.lookup_in_memory(path, self.now_ms)?,
        };
        let (found, real) = found.followed();
        if let Some(real) = real {
            let is_run = matches!(found, Lookup::Script) && self.app.mode == config::Mode::Classic;
            if self.denies(&real) || (is_run && self.app.deny.forbids_script(&real)) {
                self.leads_to_denied.set(true);
            }
        }
        Ok(found)
    }

    fn resolve(&self, below: &[u8]) -> Result<Route, Cold> {
        let mut proxies = self.app.proxies.iter();
        let leads = |to: &config::Proxy| !to.is_internal && to.path.matches(below);
        if let Some(number) =
            proxies.position(|to| leads(to) && self.findings.meets(to.requirement))
        {
            let proxied = Proxied { number, rewritten: None, is_internal: false };
            return Ok(Route::Upstream(proxied));
        }
        if let Some(page) = self.app.compose.iter().position(|page| page.path.matches(below)) {
            return Ok(Route::Page(Composed { page, path: below.to_vec(), query: None }));
        }
        if matches!(self.app.mode, config::Mode::Worker(_)) {
            return self.resolve_in_worker_mode(below);
        }
        Ok(match self.lookup(below)? {
            Lookup::Directory if below.ends_with(b"/") => self.directory(below)?,
            Lookup::Directory => self.with_slash(below),
            Lookup::NotFound => match self.files.split_script(below, |path| self.lookup(path))? {
                Some((path, path_info)) => self.script(path, path_info),
                None => self.front_controller(Route::Refuse(Reason::NotFound, None)),
            },
            found => self.found(below, found),
        })
    }

    /// The route of a file or script.
    fn found(&self, path: &[u8], found: Lookup) -> Route {
        match found {
            Lookup::File(entry) => Route::File(entry),
            Lookup::Private(entry) => self.private(path, entry),
            Lookup::Restricted(_) => forbidden(ForbiddenReason::Htaccess),
            Lookup::Script => self.script(path, b""),
            Lookup::Forbidden(reason) => forbidden(reason),
            Lookup::NotFound | Lookup::Directory | Lookup::Linked { .. } => {
                Route::Refuse(Reason::NotFound, None)
            }
            Lookup::Error(_) => Route::Refuse(Reason::ReadFailed, None),
        }
    }

    fn resolve_in_worker_mode(&self, below: &[u8]) -> Result<Route, Cold> {
        Ok(match self.lookup(below)? {
            Lookup::Script | Lookup::NotFound => script(App::WORKER_NAME, b""),
            Lookup::Directory => self.directory_in_worker_mode(below)?,
            found => self.found(below, found),
        })
    }

    fn front_controller(&self, otherwise: Route) -> Route {
        match &self.app.front_controller {
            Some(path) if self.denies(path.as_bytes()) => Route::Refuse(Reason::Denied, None),
            Some(path) => self.script(path.as_bytes(), b""),
            None => otherwise,
        }
    }

    fn script(&self, path: &[u8], path_info: &[u8]) -> Route {
        match self.app.deny.forbids_script(path) {
            true => Route::Refuse(Reason::Denied, Some("the directory is in `no_php_in`".into())),
            false => script(path, path_info),
        }
    }

    fn private(&self, path: &[u8], entry: Rc<Entry>) -> Route {
        let mut allowed = self.app.allow_private.iter();
        match allowed.any(|pattern| pattern.matches(path)) {
            true => Route::File(entry),
            false => {
                let hint = "name it in `static.allow_private` to serve it";
                Route::Refuse(Reason::PrivateFile, Some(hint.into()))
            }
        }
    }
}

fn script(path: &[u8], path_info: &[u8]) -> Route {
    Route::Script(Script {
        path: path.into(),
        path_info: path_info.into(),
        query: None,
        internal: false,
    })
}

fn forbidden(reason: ForbiddenReason) -> Route {
    let hint = reason.hint().map(Cow::Borrowed);
    let reason = match reason {
        ForbiddenReason::DotFile => Reason::DotFile,
        ForbiddenReason::SymlinkEscape
        | ForbiddenReason::SymlinkOwner
        | ForbiddenReason::SymlinkLoop => Reason::SymlinkEscape,
        ForbiddenReason::PhpSource => Reason::PhpSource,
        ForbiddenReason::Unreadable | ForbiddenReason::OtherApp => Reason::Unreadable,
        ForbiddenReason::Htaccess => Reason::Denied,
        ForbiddenReason::Traversal => Reason::BadPath,
        ForbiddenReason::NotRegular => Reason::NotAFile,
    };
    Route::Refuse(reason, hint)
}

#[cfg(test)]
mod tests;
