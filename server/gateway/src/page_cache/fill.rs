//! Filling the cache: the origin renders a page, which is stored and sent.
//!
//! Called for pages that are not stored or stale. Invariants: a page is stored before it is sent,
//! so that a client that has received it finds it stored; a page that was purged since its script
//! started is not stored; if the script fails, the stale entry is served where that is allowed.

use super::lookup::{Miss, fields};
use super::serve;
use super::store::{CacheRequest, requirements};
use crate::app::App;
use crate::origin::{Origin, StartedResponse};
use crate::refusal::Outcome;
use crate::request::{Request, ResponseSummary};
use crate::response_head::ResponseHead;
use outboard_http_server::ResponseWriter;
use outboard_log::Reason;
use outboard_page_cache::{
    self as rules, CacheStatus, Entry, Field, Fields, Key, Leader, PageCache, PurgeEpoch, Response,
    Role, Shared, Validators, now_s,
};
use outboard_reactor::spawn;
use std::rc::Rc;

/// A page that is rendered for a client.
pub(super) struct Fill<'a> {
    request: &'a Request<'a>,
    app: &'a Rc<App>,
    cache: &'a Rc<PageCache>,
    origin: &'a Origin,
    miss: Miss,
    purge_epoch: PurgeEpoch,
    request_s: u64,
}

/// The result of a request to the origin.
enum FillOutcome {
    /// The stored entry is confirmed.
    Confirmed(Shared),
    Response(StartedResponse),
}

impl<'a> Fill<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        app: &'a Rc<App>,
        cache: &'a Rc<PageCache>,
        origin: &'a Origin,
        miss: Miss,
    ) -> Self {
        let purge_epoch = cache.purge_epoch();
        Self { request, app, cache, origin, miss, purge_epoch, request_s: now_s() }
    }

    /// Responds to the client; `leader` is dropped as soon as its followers can be served.
    pub(super) async fn respond(
        self,
        response: &mut ResponseWriter,
        leader: Option<Leader>,
    ) -> Outcome {
        let outcome = self.request(response).await;
        let has_failed = match &outcome {
            Ok(FillOutcome::Response(started)) => {
                rules::is_stale_if_error_status(started.head().status)
            }
            Ok(FillOutcome::Confirmed(_)) => false,
            Err(reason) => reason.is_server_fault(),
        };
        if has_failed && let Some((entry, status)) = self.miss.stale_on_error() {
            if let Err(reason) = outcome {
                self.log(reason);
            }
            return Ok(self.serve(response, &entry, status).await);
        }
        match outcome {
            Err(reason) => Err(reason.into()),
            Ok(FillOutcome::Confirmed(entry)) => {
                drop(leader);
                let remaining_s = entry.times().remaining_s(now_s());
                let status = CacheStatus::Revalidated { remaining_s };
                Ok(self.serve(response, &entry, status).await)
            }
            Ok(FillOutcome::Response(started)) => {
                self.store_and_send(response, started, leader).await
            }
        }
    }

    /// Whether the request allows its response to be stored.
    fn may_store(&self) -> bool {
        !self.miss.is_head && !self.miss.directives.no_store
    }

    /// Requests the page from the origin, on condition that it differs from the stale entry.
    async fn request(&self, response: &mut ResponseWriter) -> Result<FillOutcome, Reason> {
        let Self { request, app, origin, .. } = *self;
        if !self.may_store() {
            let started = origin.start(request, response, app, None).await?;
            return Ok(FillOutcome::Response(started));
        }
        let mut requirements = requirements(self.cache, self.miss.stale.as_deref());
        let started = origin.start(request, response, app, Some(&requirements)).await?;
        let Some(stale) = self.miss.stale.as_ref().filter(|_| started.head().status == 304) else {
            return Ok(FillOutcome::Response(started));
        };
        let confirm = |request: &CacheRequest<'_>| request.confirm(stale, started.head());
        if let Some(entry) = self.with_request(confirm) {
            return Ok(FillOutcome::Confirmed(entry));
        }
        // The 304 concerns another page than the stale entry.
        requirements.conditions.clear();
        let started = origin.start(request, response, app, Some(&requirements)).await?;
        Ok(FillOutcome::Response(started))
    }

    async fn store_and_send(
        &self,
        response: &mut ResponseWriter,
        mut started: StartedResponse,
        leader: Option<Leader>,
    ) -> Outcome {
        let stored = self.store(&started);
        let status = CacheStatus::Miss {
            forward: self.miss.reason,
            stored: stored.as_ref().map(|_| ()).map_err(|reason| *reason),
        };
        let reason = match stored {
            Ok(entry) => {
                drop(leader);
                self.cache.compress(&entry);
                return Ok(self.serve(response, &entry, status).await);
            }
            Err(reason) => reason,
        };
        self.give_up(leader, started.head(), reason);
        self.cache.count(status);
        status.write(&mut started.head_mut().headers.bytes);
        started.send(self.request, response, self.app, self.origin).await
    }

    fn store(&self, started: &StartedResponse) -> Result<Shared, rules::Reason> {
        if self.miss.is_head {
            return Err(rules::Reason::Method);
        }
        if !self.may_store() {
            return Err(rules::Reason::RequestNoStore);
        }
        if started.is_unhandled() {
            return Err(rules::Reason::Unhandled);
        }
        self.with_request(|request| match started.whole_body() {
            Some(body) => request.store(started.head(), body, self.purge_epoch),
            None => Err(request.refusal(started.head(), started.body_bytes())),
        })
    }

    /// Ends the flight of a page that is not stored, and purges the stale entry if the new response
    /// shows that the page must not be stored any more (RFC 9111 4.3.3 and 4.3.5).
    fn give_up(&self, leader: Option<Leader>, head: &ResponseHead, reason: rules::Reason) {
        use rules::Reason::{
            NoLifetime, NoStore, Private, PurgedMeanwhile, Session, SetCookie, Unhandled, VaryStar,
        };
        let is_outdated = match &self.miss.stale {
            Some(stale) if self.miss.is_head => !head_agrees(stale, head),
            Some(_) => {
                matches!(reason, NoLifetime | NoStore | Private | Session | SetCookie | VaryStar)
            }
            None => false,
        };
        if is_outdated {
            self.cache.purge_url(&self.miss.key);
        }
        match leader {
            // A purge or a failure does not affect the next page; any other reason holds for a while.
            Some(leader) if !matches!(reason, PurgedMeanwhile | Unhandled) => leader.give_up(),
            _ => {}
        }
    }

    async fn serve(
        &self,
        response: &mut ResponseWriter,
        entry: &Entry,
        status: CacheStatus,
    ) -> ResponseSummary {
        serve::entry(self.cache, self.request, response, entry, status).await
    }

    /// Logs and counts a failure that the client does not see.
    fn log(&self, reason: Reason) {
        let (gateway, text) = (&self.request.gateway, self.request.describe());
        gateway.log_refusal(Some(self.app), self.request.request_id, reason, &text);
        gateway.server.count_refusal(reason);
    }

    fn with_request<T>(&self, work: impl FnOnce(&CacheRequest<'_>) -> T) -> T {
        let fields = fields(self.request);
        let path = self.app.below_prefix(self.request.path());
        let (cache, key, request_s) = (self.cache, &self.miss.key, self.request_s);
        work(&CacheRequest { cache, key, path, fields: Fields(&fields), request_s })
    }
}

/// Whether a response to HEAD describes the stored page.
fn head_agrees(stale: &Entry, head: &ResponseHead) -> bool {
    let stored = stale.fields();
    let lines: Vec<Field<'_>> = head.headers.lines().collect();
    let response = Response { status: head.status, fields: Fields(&lines) };
    let size = stale.plain().body.len() as u64;
    let same_length = head.content_length.is_none_or(|length| length == size);
    same_length && rules::head_agrees(Validators::of(Fields(&stored)), size, response)
}

/// Renders a page in the background while the stale one is served, unless that is under way.
pub(super) fn refresh(
    cache: &Rc<PageCache>,
    request: &Request<'_>,
    app: &Rc<App>,
    origin: &Origin,
    key: Key,
    stale: &Shared,
) {
    let Role::Leader(leader) = cache.single_flight().join(&key) else { return };
    let requirements = requirements(cache, None);
    let Some(prepared) = origin.prepare(request, app, &requirements) else { return };
    let own = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
    let fields: Vec<_> = fields(request).into_iter().map(own).collect();
    let path = request.path().to_vec();
    let (cache, app, request_id) = (cache.clone(), app.clone(), request.request_id);
    let stale = stale.clone();
    spawn(async move {
        let others = cache.load(&key, None).await;
        let is_newer =
            |other: &Shared| other.variant() == stale.variant() && other.times().is_fresh(now_s());
        // A stop or a reload does not wait for a page that no client waits for.
        if others.iter().any(is_newer) || app.pool().is_retired() {
            return;
        }
        let (purge_epoch, request_s) = (cache.purge_epoch(), now_s());
        let rendered = prepared.render(&app, request_id, &path, requirements.whole_bytes).await;
        let Ok(Some((head, body))) = rendered else { return };
        if rules::is_stale_if_error_status(head.status) {
            return;
        }
        let fields: Vec<Field<'_>> =
            fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let (path, fields) = (app.below_prefix(&path), Fields(&fields));
        let request = CacheRequest { cache: &cache, key: &key, path, fields, request_s };
        match request.store(&head, &body, purge_epoch) {
            Ok(entry) => {
                drop(leader);
                cache.compress(&entry);
            }
            Err(_) => {
                // It was for all visitors and no longer is.
                cache.purge_url(&key);
                leader.give_up();
            }
        }
    });
}
