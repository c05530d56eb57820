//! The cache's decision about a request.
//!
//! Called by [`super::respond`], again after each wait. Invariant: nothing here waits, so that the
//! decision still holds when it is carried out.

use crate::app::App;
use crate::request::Request;
use outboard_page_cache::{
    self as rules, Audience, CacheStatus, Entry, Field, Fields, Forward, Found, Key, LookupKey,
    MissReason, PageCache, RequestDirectives, RequestFacts, Reuse, Shared, now_s,
};
use smallvec::SmallVec;

/// The result of the disk and the shared tier for a page.
pub(super) enum SecondTier {
    Unknown,
    /// Entries that were found there; memory may have no room for them.
    Loaded(Vec<Shared>),
}

/// The decision.
pub(super) enum Lookup {
    /// Serve this entry; refresh it in the background if there is a key.
    Serve { entry: Shared, status: CacheStatus, refresh: Option<Key> },
    /// Look into this file, or into the shared tier, first.
    SecondTier { key: Key, file: Option<u64> },
    /// The request does not use the cache.
    Bypass(rules::Reason),
    /// Render the page.
    Miss(Miss),
    /// Nothing is stored, and the client forbids a forwarded request (`only-if-cached`).
    OnlyIfCached,
}

/// A page that is to be rendered.
pub(super) struct Miss {
    pub(super) key: Key,
    pub(super) reason: MissReason,
    /// The stored entry, which cannot be used as it is.
    pub(super) stale: Option<Shared>,
    pub(super) directives: RequestDirectives,
    /// Whether other requests may get the page: then they wait for it.
    pub(super) is_shared: bool,
    pub(super) is_head: bool,
}

/// The fields of a request; those of ordinary requests are not on the heap.
pub(super) type RequestFields<'a> = SmallVec<[Field<'a>; 32]>;

/// The fields of a request, with that host.
pub(super) fn fields<'a>(request: &'a Request<'a>) -> RequestFields<'a> {
    let host = request.authority().unwrap_or_default();
    let is_host = |name: &[u8]| name.eq_ignore_ascii_case(b"host");
    let others = request.headers().filter(|(name, _)| !is_host(name));
    std::iter::once((&b"host"[..], host)).chain(others).collect()
}

/// Looks a request up. `has_waited`: another request has just rendered the page.
pub(super) fn lookup(
    cache: &PageCache,
    request: &Request<'_>,
    app: &App,
    has_waited: bool,
    second_tier: &SecondTier,
) -> Lookup {
    // The page may be for this client alone, as with credentials in a header.
    if request.client.peer.has_valid_certificate() {
        return Lookup::Bypass(rules::Reason::Authorization);
    }
    if request.is_debugged.get() {
        return Lookup::Bypass(rules::Reason::Debugged);
    }
    let settings = cache.settings();
    let host = request.authority().unwrap_or_default();
    let fields = fields(request);
    let fields = Fields(&fields);
    let path = app.below_prefix(request.path());
    let cacheable = rules::Request { method: request.method(), path, fields };
    let facts = match RequestFacts::read(cacheable, &settings.rules, &settings.policy) {
        Ok(facts) => facts,
        Err(reason) => return Lookup::Bypass(reason),
    };
    if request.is_conditional.get() || app.has_conditional_header(path, request.conditions.get()) {
        return Lookup::Bypass(rules::Reason::Condition);
    }
    if cache.audit().has_removed(path) {
        return Lookup::Bypass(rules::Reason::Audit);
    }
    let key = LookupKey::new(request.forwarded.https, host, &request.origin_form());
    let matches = |entry: &Entry| {
        let is_implicit = entry.audience() == Audience::Anonymous;
        entry.audience().admits(&facts).is_ok()
            && entry.variant().matches(fields, is_implicit, &settings.rules.cookies)
    };
    let found = match find(cache, &key, second_tier, matches) {
        Ok(found) => found,
        Err(elsewhere) => return elsewhere,
    };
    let (stale, reason) = match found {
        Found::Nothing => (None, MissReason::Uri),
        Found::OtherVariants => (None, MissReason::Vary),
        Found::Entry(entry) => {
            let may_be_elsewhere =
                matches!(second_tier, SecondTier::Unknown) && cache.is_shared_tier_available();
            match reuse((cache, &key), entry, &facts.directives, (has_waited, may_be_elsewhere)) {
                Ok((entry, reason)) => (Some(entry), reason),
                Err(decision) => return decision,
            }
        }
    };
    if facts.directives.only_if_cached {
        return Lookup::OnlyIfCached;
    }
    Lookup::Miss(Miss {
        key: key.to_key(),
        reason,
        is_shared: !facts.is_head
            && !facts.directives.no_store
            && (facts.is_anonymous() || stale.is_some()),
        stale,
        directives: facts.directives,
        is_head: facts.is_head,
    })
}

/// What memory has, or what was loaded of the second tier.
///
/// # Errors
/// It has nothing, and the second tier is to be looked into first.
fn find(
    cache: &PageCache,
    key: &LookupKey,
    second_tier: &SecondTier,
    matches: impl Fn(&Entry) -> bool + Copy,
) -> Result<Found<Shared>, Lookup> {
    let found = cache.find(key, matches);
    if matches!(found, Found::Entry(_)) {
        return Ok(found);
    }
    match second_tier {
        SecondTier::Unknown => {
            let key = key.to_key();
            let file = cache.find_on_disk(&key, matches);
            if file.is_some() || cache.is_shared_tier_available() {
                return Err(Lookup::SecondTier { key, file });
            }
            Ok(found)
        }
        SecondTier::Loaded(entries) => {
            let entry = entries.iter().find(|entry| matches(entry));
            Ok(entry.map_or(found, |entry| Found::Entry(entry.clone())))
        }
    }
}

/// Whether the page has to be rendered although an entry is stored, and why.
///
/// # Errors
/// It has not: the decision.
fn reuse(
    (cache, key): (&PageCache, &LookupKey),
    entry: Shared,
    directives: &RequestDirectives,
    (has_waited, may_be_elsewhere): (bool, bool),
) -> Result<(Shared, MissReason), Lookup> {
    let (status, refresh) = match rules::reuse(entry.times(), directives, now_s()) {
        Reuse::Fresh { remaining_s, .. } if has_waited => {
            (CacheStatus::Collapsed { remaining_s }, false)
        }
        Reuse::Fresh { remaining_s, .. } => (CacheStatus::Hit { remaining_s }, false),
        Reuse::Stale { remaining_s, refresh, .. }
            if !refresh || cache.settings().refreshes_in_background =>
        {
            (CacheStatus::Stale { remaining_s, after_error: false }, refresh)
        }
        Reuse::Stale { .. } | Reuse::Validate(Forward::Stale) if may_be_elsewhere => {
            return Err(Lookup::SecondTier { key: key.to_key(), file: None });
        }
        Reuse::Stale { .. } | Reuse::Validate(Forward::Stale) => {
            return Ok((entry, MissReason::Stale));
        }
        Reuse::Validate(Forward::Request) if has_waited => {
            // A page that was rendered during the wait is as new as it can be.
            let remaining_s = entry.times().remaining_s(now_s());
            (CacheStatus::Collapsed { remaining_s }, false)
        }
        Reuse::Validate(Forward::Request) => return Ok((entry, MissReason::Request)),
    };
    let refresh = refresh.then(|| key.to_key());
    Err(Lookup::Serve { entry, status, refresh })
}

impl Miss {
    /// The stored entry, if it may be used for a page that cannot be rendered (RFC 5861 4).
    pub(super) fn stale_on_error(&self) -> Option<(Shared, CacheStatus)> {
        let entry = self.stale.as_ref()?;
        let now_s = now_s();
        rules::may_serve_on_error(entry.times(), &self.directives, now_s).then(|| {
            let remaining_s = entry.times().remaining_s(now_s);
            (entry.clone(), CacheStatus::Stale { remaining_s, after_error: true })
        })
    }
}

#[cfg(test)]
mod tests;
