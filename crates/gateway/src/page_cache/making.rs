//! Having a page made: the origin is asked, what it answers is judged, kept and sent.
//!
//! Called for what the cache has nothing for, and for what is stale. Invariants: a page is kept
//! before it is sent, so that nobody can have seen it who does not find it; what was purged since
//! its script began is not kept; a script that fails is stood in for by what there was before, if
//! that may be.

use super::consult::{Wanted, fields};
use super::flights::{Lead, Part};
use super::keeping::CacheRequest;
use super::{PageCache, now_s, serve};
use crate::app::App;
use crate::origin::{Begun, Origin};
use crate::php_head::PhpHead;
use crate::request::{RequestContext, ResponseSummary, refuse};
use outboard_http_server::Connection;
use outboard_log::Reason;
use outboard_page_cache::{
    self as rules, CacheStatus, Entry, Field, Fields, Key, PurgeEpoch, Response, Shared, Validators,
};
use outboard_reactor::spawn;
use std::rc::Rc;

/// A page that is being made for a client.
pub(super) struct Making<'a> {
    ctx: &'a RequestContext,
    app: &'a Rc<App>,
    cache: &'a Rc<PageCache>,
    origin: &'a Origin,
    wanted: Wanted,
    began: PurgeEpoch,
    request_s: u64,
}

/// What came of running the script.
enum Made {
    /// It confirmed what is stored.
    Confirmed(Shared),
    Begun(Begun),
}

impl<'a> Making<'a> {
    pub(super) fn new(
        ctx: &'a RequestContext,
        app: &'a Rc<App>,
        cache: &'a Rc<PageCache>,
        origin: &'a Origin,
        wanted: Wanted,
    ) -> Self {
        let began = cache.store.borrow().purge_epoch();
        Self { ctx, app, cache, origin, wanted, began, request_s: now_s() }
    }

    /// Answers the client; `lead` is let go as soon as those who wait can be answered too.
    pub(super) async fn answer(
        self,
        connection: &mut Connection,
        lead: Option<Lead>,
    ) -> ResponseSummary {
        let made = self.run(connection).await;
        let has_failed = match &made {
            Ok(Made::Begun(begun)) => rules::is_stale_if_error_status(begun.head().status),
            Ok(Made::Confirmed(_)) => false,
            Err(reason) => reason.is_server_fault(),
        };
        if has_failed && let Some((entry, outcome)) = self.cache.stand_in(&self.wanted) {
            if let Err(reason) = made {
                self.note(connection, reason);
            }
            return self.serve(connection, &entry, outcome).await;
        }
        match made {
            Err(reason) => refuse(connection, self.ctx, Some(self.app), reason).await,
            Ok(Made::Confirmed(entry)) => {
                drop(lead);
                let remaining_s = entry.times().remaining_s(now_s());
                self.serve(connection, &entry, CacheStatus::Revalidated { remaining_s }).await
            }
            Ok(Made::Begun(begun)) => self.keep_and_send(connection, begun, lead).await,
        }
    }

    /// Whether what is made may be kept as far as the request is concerned.
    fn keeps(&self) -> bool {
        !self.wanted.is_head && !self.wanted.directives.no_store
    }

    /// Runs the script, asking whether what is stored still holds.
    async fn run(&self, connection: &mut Connection) -> Result<Made, Reason> {
        let Self { ctx, app, origin, .. } = *self;
        if !self.keeps() {
            let begun = origin.begin(connection, ctx, app, None).await?;
            return Ok(Made::Begun(begun));
        }
        let mut wish = self.cache.wish(self.wanted.stale.as_deref());
        let begun = origin.begin(connection, ctx, app, Some(&wish)).await?;
        let Some(stale) = self.wanted.stale.as_ref().filter(|_| begun.head().status == 304) else {
            return Ok(Made::Begun(begun));
        };
        let confirm = |asked: &CacheRequest<'_>| self.cache.confirm(asked, stale, begun.head());
        if let Some(entry) = self.with_asked(connection, confirm) {
            return Ok(Made::Confirmed(entry));
        }
        // It speaks of something else that it believes us to have.
        wish.conditions.clear();
        let begun = origin.begin(connection, ctx, app, Some(&wish)).await?;
        Ok(Made::Begun(begun))
    }

    async fn keep_and_send(
        &self,
        connection: &mut Connection,
        mut begun: Begun,
        lead: Option<Lead>,
    ) -> ResponseSummary {
        let stored = self.store(connection, &begun);
        let outcome = CacheStatus::Miss {
            forward: self.wanted.missed,
            stored: stored.as_ref().map(|_| ()).map_err(|reason| *reason),
        };
        let reason = match stored {
            Ok(entry) => {
                drop(lead);
                self.cache.compress(&entry);
                return self.serve(connection, &entry, outcome).await;
            }
            Err(reason) => reason,
        };
        self.let_go(lead, begun.head(), reason);
        self.cache.count(outcome);
        outcome.write(&mut begun.head_mut().headers.bytes);
        begun.send(connection, self.ctx, self.app, self.origin).await
    }

    fn store(&self, connection: &mut Connection, begun: &Begun) -> Result<Shared, rules::Reason> {
        if self.wanted.is_head {
            return Err(rules::Reason::Method);
        }
        if !self.keeps() {
            return Err(rules::Reason::RequestNoStore);
        }
        self.with_asked(connection, |asked| match begun.whole_body() {
            Some(body) => self.cache.keep(asked, begun.head(), body, self.began),
            None => Err(self.cache.refusal(asked, begun.head(), begun.body_bytes())),
        })
    }

    /// PeerInfo the flight of a page that is not kept, and forgets the one of before if the page says
    /// itself that it is not to be kept any more (RFC 9111 4.3.3 and 4.3.5).
    fn let_go(&self, lead: Option<Lead>, head: &PhpHead, reason: rules::Reason) {
        use rules::Reason::{
            NoLifetime, NoStore, Private, PurgedMeanwhile, Session, SetCookie, VaryStar,
        };
        let is_outdated = match &self.wanted.stale {
            Some(stale) if self.wanted.is_head => !head_agrees(stale, head),
            Some(_) => {
                matches!(reason, NoLifetime | NoStore | Private | Session | SetCookie | VaryStar)
            }
            None => false,
        };
        if is_outdated {
            self.cache.forget(&self.wanted.key);
        }
        match lead {
            // A purge says nothing about the next page; any other reason holds for a while.
            Some(lead) if reason != PurgedMeanwhile => lead.give_up(),
            _ => {}
        }
    }

    async fn serve(
        &self,
        connection: &mut Connection,
        entry: &Entry,
        outcome: CacheStatus,
    ) -> ResponseSummary {
        self.cache.count(outcome);
        serve::entry(connection, self.ctx, entry, outcome).await
    }

    /// Logs and counts a failure that the client does not see.
    fn note(&self, connection: &mut Connection, reason: Reason) {
        let text = self.ctx.describe(connection);
        self.ctx.gateway.log_refusal(Some(self.app), self.ctx.request_id, reason, &text);
        connection.context.count_refusal(reason);
    }

    fn with_asked<T>(
        &self,
        connection: &mut Connection,
        judge: impl FnOnce(&CacheRequest<'_>) -> T,
    ) -> T {
        let buffers = connection.buffers();
        let fields = fields(self.ctx, buffers);
        let path = self.app.below_prefix(&buffers.path);
        let (key, request_s) = (&self.wanted.key, self.request_s);
        judge(&CacheRequest { key, path, fields: Fields(&fields), request_s })
    }
}

/// Whether an answer to HEAD describes the stored page.
fn head_agrees(stale: &Entry, head: &PhpHead) -> bool {
    let stored = stale.fields();
    let answer: Vec<Field<'_>> = head.headers.lines().collect();
    let answer = Response { status: head.status, fields: Fields(&answer) };
    let size = stale.plain().body.len() as u64;
    let same_length = head.content_length.is_none_or(|length| length == size);
    same_length && rules::head_agrees(Validators::of(Fields(&stored)), size, answer)
}

impl PageCache {
    /// Makes a page anew while the old one is used, unless that is being done.
    pub(super) fn refresh_behind(
        self: &Rc<Self>,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &Rc<App>,
        origin: &Origin,
        key: Key,
        stale: &Shared,
    ) {
        let Part::Lead(lead) = self.flights.join(&key) else { return };
        let wish = self.wish(None);
        let Some(prepared) = origin.prepare(connection, ctx, app, &wish) else { return };
        let buffers = connection.buffers();
        let own = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
        let fields: Vec<_> = fields(ctx, buffers).into_iter().map(own).collect();
        let path = buffers.path.clone();
        let (cache, app, request_id) = (self.clone(), app.clone(), ctx.request_id);
        let stale = stale.clone();
        spawn(async move {
            let others = cache.look_behind(&key, None).await;
            let is_newer = |other: &Shared| {
                other.variant() == stale.variant() && other.times().is_fresh(now_s())
            };
            // Whoever stops or reloads meanwhile waits for nothing that nobody waits for.
            if others.iter().any(is_newer) || app.pool.is_retired() {
                return;
            }
            let began = cache.store.borrow().purge_epoch();
            let request_s = now_s();
            let made = prepared.make(&app, request_id, &path, wish.whole_bytes).await;
            let Ok(Some((head, body))) = made else { return };
            if rules::is_stale_if_error_status(head.status) {
                return;
            }
            let fields: Vec<Field<'_>> =
                fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            let path = app.below_prefix(&path);
            let asked = CacheRequest { key: &key, path, fields: Fields(&fields), request_s };
            match cache.keep(&asked, &head, &body, began) {
                Ok(entry) => {
                    drop(lead);
                    cache.compress(&entry);
                }
                Err(_) => {
                    // It was for everybody and is no longer.
                    cache.forget(&key);
                    lead.give_up();
                }
            }
        });
    }
}
