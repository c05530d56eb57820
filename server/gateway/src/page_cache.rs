//! The handler of the page cache: hits, misses that fill it, and requests that bypass it.
//!
//! Called by [`crate::dispatch`] for every request that leads to a script or to another server. The
//! rules and the tiers are those of `outboard_page_cache`. Invariants: a response that is not from
//! the cache is the same as without a cache; only complete pages are stored; each response has its
//! cache status.

pub(crate) mod admin;
mod audit;
mod fill;
mod http_purge;
mod lookup;
pub(crate) mod purge_operations;
mod serve;
mod store;

use crate::app::App;
use crate::origin::Origin;
use crate::refusal::Outcome;
use crate::request::Request;
use crate::response_head::ResponseHead;
use fill::Fill;
use lookup::{Lookup, SecondTier};
use outboard_http_server::{Client, ResponseWriter};
use outboard_log::Reason;
use outboard_page_cache::{
    self as rules, CacheStatus, Field, Fields, Flight, Key, PageCache, Response, Role, Target,
};
use outboard_reactor::{now_ms, with_deadline};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

pub(crate) use http_purge::{is_purge, purge};

/// Responds to a request that leads to an origin.
pub(crate) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    cache: &Rc<PageCache>,
    origin: &Origin,
) -> Outcome {
    let until_ms = now_ms() + cache.settings().lock_timeout_ms;
    let (mut has_waited, mut second_tier) = (false, SecondTier::Unknown);
    loop {
        let miss = match lookup::lookup(cache, request, app, has_waited, &second_tier) {
            Lookup::Serve { entry, status, refresh } => {
                if let Some(key) = refresh {
                    fill::refresh(cache, request, app, origin, key, &entry);
                }
                audit::sample_hit(cache, request, app, origin, &entry);
                return Ok(serve::entry(cache, request, response, &entry, status).await);
            }
            Lookup::SecondTier { key, file } => {
                match cache.single_flight().join(&key) {
                    Role::Leader(_leader) => {
                        second_tier = SecondTier::Loaded(cache.load(&key, file).await);
                    }
                    // The leader loads or renders it.
                    Role::Follower(flight) => {
                        match wait(&request.client, &flight, until_ms).await {
                            Waited::Over => {}
                            Waited::TooLong => second_tier = SecondTier::Loaded(Vec::new()),
                            Waited::ClientGone => return Err(Reason::ClientGone.into()),
                        }
                    }
                    Role::Alone => second_tier = SecondTier::Loaded(Vec::new()),
                }
                continue;
            }
            Lookup::Bypass(reason) => {
                return bypass(request, response, app, cache, origin, reason).await;
            }
            Lookup::OnlyIfCached => return Err(Reason::NotCached.into()),
            Lookup::Miss(miss) => miss,
        };
        let role = if miss.is_shared { cache.single_flight().join(&miss.key) } else { Role::Alone };
        let leader = match role {
            Role::Leader(leader) => Some(leader),
            Role::Alone => None,
            Role::Follower(flight) => match wait(&request.client, &flight, until_ms).await {
                Waited::Over => {
                    has_waited = true;
                    continue;
                }
                Waited::ClientGone => return Err(Reason::ClientGone.into()),
                Waited::TooLong => match miss.stale_on_error() {
                    Some((entry, status)) => {
                        return Ok(serve::entry(cache, request, response, &entry, status).await);
                    }
                    None => None,
                },
            },
        };
        return Fill::new(request, app, cache, origin, miss).respond(response, leader).await;
    }
}

/// How waiting for another request ended.
enum Waited {
    Over,
    TooLong,
    ClientGone,
}

async fn wait(client: &Client, flight: &Flight, until_ms: u64) -> Waited {
    let over = poll_fn(|context| {
        if flight.poll_over(context).is_ready() {
            return Poll::Ready(Waited::Over);
        }
        client.poll_gone().map(|()| Waited::ClientGone)
    });
    with_deadline(until_ms, over).await.unwrap_or(Waited::TooLong)
}

/// Responds without the cache, and purges the pages that it invalidates.
async fn bypass(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    cache: &PageCache,
    origin: &Origin,
    reason: rules::Reason,
) -> Outcome {
    let mut started = origin.start(request, response, app, None).await?;
    invalidate(request, cache, started.head());
    let status = CacheStatus::Bypass(reason);
    cache.count(status);
    status.write(&mut started.head_mut().headers.bytes);
    started.send(request, response, app, origin).await
}

/// RFC 9111 4.4.
fn invalidate(request: &Request<'_>, cache: &PageCache, head: &ResponseHead) {
    if !rules::is_unsafe(request.method()) {
        return;
    }
    let host = request.authority().unwrap_or_default();
    let https = request.forwarded.https;
    let path_and_query = request.origin_form();
    let scheme: &[u8] = if https { b"https" } else { b"http" };
    let target = Target { scheme, authority: host, path_and_query: &path_and_query };
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = Response { status: head.status, fields: Fields(&fields) };
    for path in rules::invalidated(request.method(), target, response) {
        cache.purge_url(&Key::new(https, host, &path));
    }
}

#[cfg(test)]
mod tests;
