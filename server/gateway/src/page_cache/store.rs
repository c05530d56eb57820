//! Storing a response: whether it may be stored, for which requests, and how a 304 renews it.
//!
//! Called by [`super::fill`]. Invariant: a response is stored only if the rules allow it, it is
//! complete, and no purge selected it since its rendering started.

use crate::cache_requirements::CacheRequirements;
use crate::response_head::ResponseHead;
use outboard_http1::Method;
use outboard_page_cache::{
    self as rules, Control, Entry, ExchangeTimes, Field, Fields, Freshness, Key, PageCache,
    PurgeEpoch, Reason, Request, RequestFacts, Response, Shared, Storable, Validation, Validators,
    now_s,
};

/// The request that a response is for.
pub(super) struct CacheRequest<'a> {
    pub(super) cache: &'a PageCache,
    pub(super) key: &'a Key,
    /// Below the app's prefix.
    pub(super) path: &'a [u8],
    pub(super) fields: Fields<'a>,
    /// When it was sent to the origin.
    pub(super) request_s: u64,
}

impl CacheRequest<'_> {
    /// Stores a complete response, or returns why it is not stored.
    pub(super) fn store(
        &self,
        head: &ResponseHead,
        body: &[u8],
        purge_epoch: PurgeEpoch,
    ) -> Result<Shared, Reason> {
        let settings = self.cache.settings();
        if body.len() > settings.policy.body_max_bytes {
            return Err(Reason::TooLarge);
        }
        if head.content_length.is_some_and(|length| length != body.len() as u64) {
            return Err(Reason::Incomplete);
        }
        if head.used_session {
            return Err(Reason::Session);
        }
        if head.expires_at_once {
            return Err(Reason::NoLifetime);
        }
        let lines: Vec<Field<'_>> = head.headers.lines().collect();
        let response = Response { status: head.status, fields: Fields(&lines) };
        let mut storable = self.storable(response)?;
        storable.no_transform |= !settings.compresses;
        let stored = rules::stored_fields(response.fields, &Control::read(response.fields));
        let tags = rules::tags_of(response.fields);
        let (key, body) = (self.key.clone(), body.into());
        let mut entry = Entry::new(key, head.status, Fields(&stored), body, storable, tags);
        if head.headers.owns_server {
            entry = entry.with_own_server();
        }
        self.cache.insert(entry, purge_epoch)
    }

    /// Whether and how a response may be stored that was just received.
    fn storable(&self, response: Response<'_>) -> Result<Storable, Reason> {
        let settings = self.cache.settings();
        let (policy, cookies) = (&settings.policy, &settings.rules.cookies);
        let request = Request { method: Method::Get, path: self.path, fields: self.fields };
        let facts = RequestFacts::read(request, &settings.rules, policy)?;
        let times = ExchangeTimes { request_s: self.request_s, response_s: now_s() };
        rules::storable(policy, cookies, &facts, self.fields, response, times)
    }

    /// Why an incomplete response is not stored.
    pub(super) fn refusal(&self, head: &ResponseHead, body_bytes: usize) -> Reason {
        if head.sendfile.is_some() {
            return Reason::File;
        }
        if head.used_session {
            return Reason::Session;
        }
        let lines: Vec<Field<'_>> = head.headers.lines().collect();
        let response = Response { status: head.status, fields: Fields(&lines) };
        let otherwise = match body_bytes > self.cache.settings().policy.body_max_bytes {
            true => Reason::TooLarge,
            false => Reason::Streamed,
        };
        self.storable(response).err().unwrap_or(otherwise)
    }

    /// The stored entry, renewed by a 304; `None` if that does not concern it, or the entry may no
    /// longer be stored (RFC 9111 4.3.3 and 4.3.4).
    pub(super) fn confirm(&self, stale: &Shared, head: &ResponseHead) -> Option<Shared> {
        let stored = stale.received_fields();
        let lines: Vec<Field<'_>> = head.headers.lines().collect();
        let confirmation = Response { status: head.status, fields: Fields(&lines) };
        if head.used_session || head.expires_at_once {
            return None;
        }
        if rules::validate(Validators::of(Fields(&stored)), confirmation) != Validation::Confirmed {
            return None;
        }
        // A 304 without Date is dated by its arrival, so the stored Date must not apply.
        let is_dated = confirmation.fields.contains("date");
        let others =
            stored.iter().filter(|(name, _)| is_dated || !name.eq_ignore_ascii_case(b"date"));
        let others: Vec<Field<'_>> = others.copied().collect();
        let fields = rules::freshened(Fields(&others), confirmation.fields);
        let response = Response { status: stale.status(), fields: Fields(&fields) };
        let stored = rules::stored_fields(response.fields, &Control::read(response.fields));
        let storable = match self.storable(response) {
            Ok(storable) => storable,
            // The 304 forbids nothing: its page is for this client, and is not fetched a second time.
            Err(
                Reason::NoLifetime
                | Reason::UnknownCookie
                | Reason::UnknownField
                | Reason::Authorization,
            ) => return Some(stale.freshened(Fields(&stored), used_once(stale)).into()),
            Err(_) => return None,
        };
        let entry = stale.freshened(Fields(&stored), storable);
        // If it was purged meanwhile, the confirmed entry is used for this request only.
        Some(self.cache.replace(stale, entry.clone()).unwrap_or_else(|| entry.into()))
    }
}

/// A stored entry as one that was just confirmed and is stale again.
fn used_once(stale: &Entry) -> Storable {
    let now = Freshness { received_s: now_s(), initial_age_s: 0, lifetime_s: 0, ..*stale.times() };
    Storable {
        freshness: now,
        variant: stale.variant().clone(),
        audience: stale.audience(),
        no_transform: true,
    }
}

/// The requirements of the cache on an origin: the complete response, or a confirmation of `stale`.
pub(super) fn requirements(cache: &PageCache, stale: Option<&Entry>) -> CacheRequirements {
    let stale = stale.filter(|entry| entry.status() == 200);
    let fields = stale.map(Entry::fields).unwrap_or_default();
    let own = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
    let conditions = rules::conditional_fields(Validators::of(Fields(&fields))).map(own);
    // One byte more than is stored shows that a body is too large.
    let whole_bytes = cache.settings().policy.body_max_bytes + 1;
    CacheRequirements { whole_bytes, conditions: conditions.collect() }
}

#[cfg(test)]
mod tests;
