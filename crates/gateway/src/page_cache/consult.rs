//! What the cache says about a request, before anything is waited for.
//!
//! Called by [`super::answer`], again after each wait. Invariant: nothing here waits, so that what it
//! says is true when it is acted upon.

use super::{PageCache, now_s};
use crate::app::App;
use crate::request::RequestContext;
use outboard_http_server::Buffers;
use outboard_http_server::Connection;
use outboard_page_cache::{
    self as rules, CacheStatus, Entry, Field, Fields, Found, Key, MissReason, Request,
    RequestDirectives, RequestFacts, Reuse, Shared,
};

/// What is known of a page in the places behind memory: the disk, and what is shared.
pub(super) enum Behind {
    Unknown,
    /// It was looked for. Memory may have no room for what was there.
    Found(Vec<Shared>),
}

/// What the cache says about a request.
pub(super) enum Consulted {
    /// Answer with this.
    Serve { entry: Shared, outcome: CacheStatus, refresh: Option<Key> },
    /// This file may have it, or those with whom pages are shared.
    Behind { key: Key, file: Option<u64> },
    /// It is not the cache's business.
    Bypass(rules::Reason),
    /// Have it made.
    Make(Wanted),
    /// The client wants nothing made (`only-if-cached`).
    Nothing,
}

/// A page that is to be made.
pub(super) struct Wanted {
    pub(super) key: Key,
    pub(super) missed: MissReason,
    /// What is stored and cannot be used as it is.
    pub(super) stale: Option<Shared>,
    pub(super) directives: RequestDirectives,
    /// Whether others may get what is made: then one is made for all.
    pub(super) is_shared: bool,
    pub(super) is_head: bool,
}

/// The host that a request is for, as the origin is told it.
pub(super) fn host<'a>(ctx: &'a RequestContext, buffers: &'a Buffers) -> &'a [u8] {
    let own = buffers.head.host(&buffers.input);
    ctx.forwarded.host.as_deref().or(own).unwrap_or_default()
}

/// The fields of a request, with that host.
pub(super) fn fields<'a>(ctx: &'a RequestContext, buffers: &'a Buffers) -> Vec<Field<'a>> {
    let host = host(ctx, buffers);
    let is_host = |name: &[u8]| name.eq_ignore_ascii_case(b"host");
    let others = buffers.head.headers(&buffers.input).filter(|(name, _)| !is_host(name));
    std::iter::once((&b"host"[..], host)).chain(others).collect()
}

impl PageCache {
    /// Looks a request up. `has_waited` says that a page was just made for it.
    pub(super) fn consult(
        &self,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &App,
        has_waited: bool,
        behind: &Behind,
    ) -> Consulted {
        let buffers = connection.buffers();
        let (head, input) = (&buffers.head, &buffers.input);
        let host = host(ctx, buffers);
        let fields = fields(ctx, buffers);
        let fields = Fields(&fields);
        let path = app.below_prefix(&buffers.path);
        let request = Request { method: ctx.request.method, path, fields };
        let facts = match RequestFacts::read(request, &self.guard, &self.policy) {
            Ok(facts) => facts,
            Err(reason) => return Consulted::Bypass(reason),
        };
        if self.audit.has_taken_out(path) {
            return Consulted::Bypass(rules::Reason::Audit);
        }
        let key = Key::new(ctx.forwarded.https, host, &head.origin_form(input));
        let answers = |entry: &Entry| {
            let is_silent = entry.audience() == rules::Audience::Anonymous;
            entry.audience().admits(&facts).is_ok()
                && entry.variant().matches(fields, is_silent, &self.guard.cookies)
        };
        let mut found = self.store.borrow_mut().find(&key, answers);
        let may_be_behind = matches!(behind, Behind::Unknown);
        let is_shared = self.commons.as_ref().is_some_and(|commons| commons.is_there());
        if !matches!(found, Found::Entry(_)) {
            match behind {
                Behind::Unknown => {
                    let file = self.on_disk(&key, answers);
                    if file.is_some() || is_shared {
                        return Consulted::Behind { key, file };
                    }
                }
                Behind::Found(entries) => {
                    let entry = entries.iter().find(|entry| answers(entry));
                    found = entry.map_or(found, |entry| Found::Entry(entry.clone()));
                }
            }
        }
        let (stale, missed) = match found {
            Found::Nothing => (None, MissReason::Uri),
            Found::OtherVariants => (None, MissReason::Vary),
            Found::Entry(entry) => match rules::reuse(entry.times(), &facts.directives, now_s()) {
                Reuse::Fresh { remaining_s, .. } => {
                    let outcome = match has_waited {
                        true => CacheStatus::Collapsed { remaining_s },
                        false => CacheStatus::Hit { remaining_s },
                    };
                    return Consulted::Serve { entry, outcome, refresh: None };
                }
                Reuse::Stale { remaining_s, refresh, .. } if !refresh || self.refreshes_behind => {
                    let outcome = CacheStatus::Stale { remaining_s, after_error: false };
                    let refresh = refresh.then_some(key);
                    return Consulted::Serve { entry, outcome, refresh };
                }
                Reuse::Stale { .. } | Reuse::Validate(rules::Forward::Stale) => {
                    if may_be_behind && is_shared {
                        return Consulted::Behind { key, file: None };
                    }
                    (Some(entry), MissReason::Stale)
                }
                Reuse::Validate(rules::Forward::Request) if has_waited => {
                    // What was made while this request waited is as new as it can be.
                    let remaining_s = entry.times().remaining_s(now_s());
                    let outcome = CacheStatus::Collapsed { remaining_s };
                    return Consulted::Serve { entry, outcome, refresh: None };
                }
                Reuse::Validate(rules::Forward::Request) => (Some(entry), MissReason::Request),
            },
        };
        if facts.directives.only_if_cached {
            return Consulted::Nothing;
        }
        Consulted::Make(Wanted {
            key,
            missed,
            is_shared: !facts.is_head
                && !facts.directives.no_store
                && (facts.is_anonymous() || stale.is_some()),
            stale,
            directives: facts.directives,
            is_head: facts.is_head,
        })
    }

    /// What may be used instead of a page that cannot be made (RFC 5861 4).
    pub(super) fn stand_in(&self, wanted: &Wanted) -> Option<(Shared, CacheStatus)> {
        let entry = wanted.stale.as_ref()?;
        let now_s = now_s();
        rules::may_serve_on_error(entry.times(), &wanted.directives, now_s).then(|| {
            let remaining_s = entry.times().remaining_s(now_s);
            (entry.clone(), CacheStatus::Stale { remaining_s, after_error: true })
        })
    }
}
