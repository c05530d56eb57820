//! [`Rewritten`]: what the rewrite rules of an app make of a path.
//!
//! Called by the search for a route.

use super::{Cold, Route, Search};
use outboard_config::{self as config, Rewrite, RewriteWhen};
use outboard_http1::{merge_slashes, with_query};
use outboard_static_files::Lookup;

/// A path in place of the requested one.
pub(super) struct NewPath {
    pub(super) path: Vec<u8>,
    pub(super) query: Option<Vec<u8>>,
}

/// What the rules of an app lead to.
pub(super) enum Rewritten {
    Unchanged,
    Path(NewPath),
    Route(Route),
}

impl Search<'_> {
    pub(super) fn rewrite(&self, below: &[u8]) -> Result<Rewritten, Cold> {
        let mut new: Option<NewPath> = None;
        for rule in &self.app.rewrites {
            let path = new.as_ref().map_or(below, |new| &new.path);
            if !self.applies(rule, path)? {
                continue;
            }
            let applied = rule.apply(path).filter(|_| self.findings.meets(rule.requirement));
            match applied {
                None => continue,
                Some(config::Rewritten::To { mut path, query }) => {
                    merge_slashes(&mut path);
                    let query = query.or_else(|| new.and_then(|new| new.query));
                    new = Some(NewPath { path, query });
                }
                Some(config::Rewritten::Redirect { status, location, query }) => {
                    let location = with_query(location, query.as_deref().or(self.query));
                    return Ok(Rewritten::Route(Route::Redirect { status, location }));
                }
                Some(config::Rewritten::Status(status, text)) => {
                    return Ok(Rewritten::Route(Route::Status(status, text)));
                }
            }
            if rule.last {
                break;
            }
        }
        Ok(new.map_or(Rewritten::Unchanged, Rewritten::Path))
    }

    fn applies(&self, rule: &Rewrite, path: &[u8]) -> Result<bool, Cold> {
        Ok(match rule.when {
            RewriteWhen::Always => true,
            RewriteWhen::Missing => matches!(self.lookup(path)?, Lookup::NotFound),
            RewriteWhen::Exists => !matches!(self.lookup(path)?, Lookup::NotFound),
        })
    }
}
