//! Keeping an answer: whether it may be, for whom and how long, and what confirms it later.
//!
//! Called by [`super::making`]. Invariant: nothing is kept that the rules refuse, that did not come whole,
//! or that was purged since it began to be made.

use super::{PageCache, now_s};
use crate::php_head::PhpHead;
use crate::script::ForCache;
use outboard_http1::Method;
use outboard_page_cache::{
    self as rules, Control, Entry, ExchangeTimes, Field, Fields, Key, PurgeEpoch, Request,
    RequestFacts, Response, Shared, Storable, Validation, Validators,
};

/// What was asked of the script.
pub(super) struct Asked<'a> {
    pub(super) key: &'a Key,
    pub(super) path: &'a [u8],
    pub(super) fields: Fields<'a>,
    pub(super) request_s: u64,
}

impl PageCache {
    /// Keeps a whole answer, if it is one to keep.
    pub(super) fn keep(
        &self,
        asked: &Asked<'_>,
        head: &PhpHead,
        body: &[u8],
        began: PurgeEpoch,
    ) -> Result<Shared, rules::Reason> {
        if body.len() > self.policy.body_max_bytes {
            return Err(rules::Reason::TooLarge);
        }
        if head.content_length.is_some_and(|length| length != body.len() as u64) {
            return Err(rules::Reason::Incomplete);
        }
        if head.used_session {
            return Err(rules::Reason::Session);
        }
        if head.expires_at_once {
            return Err(rules::Reason::NoLifetime);
        }
        let response: Vec<Field<'_>> = head.headers.lines().collect();
        let response = Response { status: head.status, fields: Fields(&response) };
        let mut storable = self.judge(asked, response)?;
        storable.no_transform |= !self.compresses;
        let now_s = storable.freshness.received_s;
        let kept = rules::stored_fields(response.fields, &Control::read(response.fields));
        let mut store = self.store.borrow_mut();
        let tags = rules::tags_of(response.fields);
        let (key, body) = (asked.key.clone(), body.into());
        let mut entry = Entry::new(key, head.status, Fields(&kept), body, storable, tags);
        if head.headers.owns_server {
            entry = entry.with_own_server();
        }
        store.insert(entry, began, now_s)
    }

    /// Whether and how a response may be kept that was received just now.
    fn judge(&self, asked: &Asked<'_>, response: Response<'_>) -> Result<Storable, rules::Reason> {
        let request = Request { method: Method::Get, path: asked.path, fields: asked.fields };
        let facts = RequestFacts::read(request, &self.guard, &self.policy)?;
        let exchanged = ExchangeTimes { request_s: asked.request_s, response_s: now_s() };
        let cookies = &self.guard.cookies;
        rules::storable(&self.policy, cookies, &facts, asked.fields, response, exchanged)
    }

    /// Why a response is not kept that did not come whole.
    pub(super) fn refusal(
        &self,
        asked: &Asked<'_>,
        head: &PhpHead,
        body_bytes: usize,
    ) -> rules::Reason {
        if head.sendfile.is_some() {
            return rules::Reason::File;
        }
        if head.used_session {
            return rules::Reason::Session;
        }
        let response: Vec<Field<'_>> = head.headers.lines().collect();
        let response = Response { status: head.status, fields: Fields(&response) };
        let otherwise = match body_bytes > self.policy.body_max_bytes {
            true => rules::Reason::TooLarge,
            false => rules::Reason::Streamed,
        };
        self.judge(asked, response).err().unwrap_or(otherwise)
    }

    /// What is asked of a script whose page is to be kept. `stale` is what there is of it.
    pub(super) fn wish(&self, stale: Option<&Entry>) -> ForCache {
        let stale = stale.filter(|entry| entry.status() == 200);
        let fields = stale.map(Entry::fields).unwrap_or_default();
        let own = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
        let conditions = rules::conditional_fields(Validators::of(Fields(&fields))).map(own);
        // One byte more than is kept tells that it is too much.
        ForCache { whole_bytes: self.policy.body_max_bytes + 1, conditions: conditions.collect() }
    }

    /// The stored page, freshened by a 304; `None` when that is not about it, or it may not be kept
    /// any longer (RFC 9111 4.3.3 and 4.3.4).
    pub(super) fn confirm(
        &self,
        asked: &Asked<'_>,
        stale: &Shared,
        head: &PhpHead,
    ) -> Option<Shared> {
        let stored = stale.received_fields();
        let answer: Vec<Field<'_>> = head.headers.lines().collect();
        let answer = Response { status: head.status, fields: Fields(&answer) };
        if head.used_session || head.expires_at_once {
            return None;
        }
        if rules::validate(Validators::of(Fields(&stored)), answer) != Validation::Confirmed {
            return None;
        }
        // Without a Date of its own the answer is as old as it is here.
        let dated = answer.fields.contains("date");
        let kept = stored.iter().filter(|(name, _)| dated || !name.eq_ignore_ascii_case(b"date"));
        let kept: Vec<Field<'_>> = kept.copied().collect();
        let fields = rules::freshened(Fields(&kept), answer.fields);
        let response = Response { status: stale.status(), fields: Fields(&fields) };
        let storable = self.judge(asked, response).ok()?;
        let kept = rules::stored_fields(response.fields, &Control::read(response.fields));
        let entry = stale.freshened(Fields(&kept), storable);
        let mut store = self.store.borrow_mut();
        // Purged meanwhile: it may be used for this once, being confirmed, and not be kept.
        let replaced = store.replace(stale, entry.clone());
        drop(store);
        Some(match replaced {
            Some(replaced) => {
                self.shelve(&replaced);
                replaced
            }
            None => entry.into(),
        })
    }
}
