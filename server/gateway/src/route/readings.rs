//! [`Readings`]: the paths that a program behind the gateway may read in a request, and their rules.
//!
//! Called by [`crate::dispatch`] with the route that was found. Invariants: a request that leaves the gateway
//! satisfies the rules of its path in every reading; an upstream gets no path that programs disagree about.

use super::{Findings, Route};
use crate::app::App;
use crate::generation::Generation;
use outboard_http1::{other_readings, path_for_upstream, with_query};
use outboard_log::Reason;
use std::borrow::Cow;
use std::rc::Rc;

/// See the module.
pub(crate) struct Readings<'r> {
    pub(crate) generation: &'r Generation,
    pub(crate) app: &'r Rc<App>,
    /// Without its port.
    pub(crate) host: &'r [u8],
    /// Path and query, as they were received.
    pub(crate) target: (&'r [u8], Option<&'r [u8]>),
    pub(crate) findings: &'r Findings,
}

impl Readings<'_> {
    /// The route, or a refusal. A file is read by the gateway alone.
    pub(crate) fn check(&self, route: Route) -> Route {
        let mut proxied = match route {
            Route::Upstream(proxied) => proxied,
            Route::Script(_) | Route::Page(_) => {
                let paths = other_readings(self.target.0).filter(|path| self.is_of_app(path));
                return self.refusal(paths).unwrap_or(route);
            }
            other => return other,
        };
        let rewritten = proxied.rewritten.as_deref().map(split_query);
        let (raw, query) = rewritten.unwrap_or(self.target);
        let Some(path) = path_for_upstream(raw) else { return ambiguous() };
        let below = |path: Vec<u8>| match rewritten {
            // It is below the prefix.
            Some(_) => {
                [self.app.config.path_prefix.trim_end_matches('/').as_bytes(), &path].concat()
            }
            None => path,
        };
        let mut paths: Vec<_> = other_readings(&path).map(below).collect();
        if !paths.iter().all(|path| self.is_of_app(path)) {
            return ambiguous();
        }
        if let Some(refused) = self.refusal(paths.drain(..)) {
            return refused;
        }
        if let Cow::Owned(path) = path {
            proxied.rewritten = Some(with_query(path, query));
        }
        Route::Upstream(proxied)
    }

    fn is_of_app(&self, path: &[u8]) -> bool {
        let found = self.generation.app(self.host, path);
        found.is_some_and(|found| Rc::ptr_eq(&found, self.app))
    }

    /// A refusal if one of the paths is denied. Their access rules hold for the request.
    fn refusal(&self, mut paths: impl Iterator<Item = Vec<u8>>) -> Option<Route> {
        let app = &self.app.config;
        let is_denied = paths.any(|path| {
            let below = self.app.below_prefix(&path);
            let findings = self.findings;
            let rules = app.access.of_request(below, findings.conditions);
            findings.rules.set(findings.rules.get().and(rules));
            app.deny.denies(below)
        });
        is_denied.then_some(Route::Refuse(Reason::Denied, None))
    }
}

fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

fn ambiguous() -> Route {
    let hint = "upstreams read dot segments beside encoded or repeated slashes, and `\\`, in different ways";
    Route::Refuse(Reason::BadPath, Some(hint.into()))
}
