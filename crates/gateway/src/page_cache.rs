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
mod purge_operations;
mod serve;
mod store;

use crate::app::App;
use crate::origin::Origin;
use crate::request::{RequestContext, ResponseSummary, refuse};
use crate::response_head::ResponseHead;
use fill::Fill;
use lookup::{Lookup, SecondTier};
use outboard_http_server::Connection;
use outboard_log::Reason;
use outboard_page_cache::{
    self as rules, CacheStatus, Field, Fields, Flight, Key, PageCache, Response, Role, Target,
};
use outboard_reactor::{now_ms, with_deadline};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

pub(crate) use http_purge::{is_purge, purge};
pub(crate) use purge_operations::PurgeOperations;

/// Responds to a request that leads to an origin.
pub(crate) async fn respond(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    cache: &Rc<PageCache>,
    origin: Origin,
) -> ResponseSummary {
    let until_ms = now_ms() + cache.settings().lock_timeout_ms;
    let (mut has_waited, mut second_tier) = (false, SecondTier::Unknown);
    loop {
        let miss = match lookup::lookup(cache, connection, ctx, app, has_waited, &second_tier) {
            Lookup::Serve { entry, status, refresh } => {
                if let Some(key) = refresh {
                    fill::refresh(cache, connection, ctx, app, &origin, key, &entry);
                }
                audit::sample_hit(cache, connection, ctx, app, &origin, &entry);
                return serve::entry(cache, connection, ctx, &entry, status).await;
            }
            Lookup::SecondTier { key, file } => {
                match cache.single_flight().join(&key) {
                    Role::Leader(_leader) => {
                        second_tier = SecondTier::Loaded(cache.load(&key, file).await);
                    }
                    // The leader loads or renders it.
                    Role::Follower(flight) => match wait(connection, &flight, until_ms).await {
                        Waited::Over => {}
                        Waited::TooLong => second_tier = SecondTier::Loaded(Vec::new()),
                        Waited::ClientGone => {
                            return refuse(connection, ctx, Some(app), Reason::ClientGone).await;
                        }
                    },
                    Role::Alone => second_tier = SecondTier::Loaded(Vec::new()),
                }
                continue;
            }
            Lookup::Bypass(reason) => {
                return bypass(connection, ctx, app, cache, &origin, reason).await;
            }
            Lookup::OnlyIfCached => {
                return refuse(connection, ctx, Some(app), Reason::NotCached).await;
            }
            Lookup::Miss(miss) => miss,
        };
        let role = if miss.is_shared { cache.single_flight().join(&miss.key) } else { Role::Alone };
        let leader = match role {
            Role::Leader(leader) => Some(leader),
            Role::Alone => None,
            Role::Follower(flight) => match wait(connection, &flight, until_ms).await {
                Waited::Over => {
                    has_waited = true;
                    continue;
                }
                Waited::ClientGone => {
                    return refuse(connection, ctx, Some(app), Reason::ClientGone).await;
                }
                Waited::TooLong => match miss.stale_on_error() {
                    Some((entry, status)) => {
                        return serve::entry(cache, connection, ctx, &entry, status).await;
                    }
                    None => None,
                },
            },
        };
        return Fill::new(ctx, app, cache, &origin, miss).respond(connection, leader).await;
    }
}

/// How waiting for another request ended.
enum Waited {
    Over,
    TooLong,
    ClientGone,
}

async fn wait(connection: &Connection, flight: &Flight, until_ms: u64) -> Waited {
    let over = poll_fn(|context| {
        if flight.poll_over(context).is_ready() {
            return Poll::Ready(Waited::Over);
        }
        connection.poll_gone().map(|()| Waited::ClientGone)
    });
    with_deadline(until_ms, over).await.unwrap_or(Waited::TooLong)
}

/// Responds without the cache, and purges the pages that it invalidates.
async fn bypass(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    cache: &PageCache,
    origin: &Origin,
    reason: rules::Reason,
) -> ResponseSummary {
    let mut started = match origin.start(connection, ctx, app, None).await {
        Ok(started) => started,
        Err(reason) => return refuse(connection, ctx, Some(app), reason).await,
    };
    invalidate(connection, ctx, cache, started.head());
    let status = CacheStatus::Bypass(reason);
    cache.count(status);
    status.write(&mut started.head_mut().headers.bytes);
    started.send(connection, ctx, app, origin).await
}

/// RFC 9111 4.4.
fn invalidate(
    connection: &mut Connection,
    ctx: &RequestContext,
    cache: &PageCache,
    head: &ResponseHead,
) {
    if !rules::is_unsafe(ctx.request.method) {
        return;
    }
    let buffers = connection.buffers();
    let (request, input) = (&buffers.head, &buffers.input);
    let host = lookup::host(ctx, buffers);
    let https = ctx.forwarded.https;
    let path_and_query = request.origin_form(input);
    let scheme: &[u8] = if https { b"https" } else { b"http" };
    let target = Target { scheme, authority: host, path_and_query: &path_and_query };
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = Response { status: head.status, fields: Fields(&fields) };
    for path in rules::invalidated(ctx.request.method, target, response) {
        cache.purge_url(&Key::new(https, host, &path));
    }
}

#[cfg(test)]
mod tests;
