//! Answering with a PHP script: hand the request to the pool, relay what the worker says.
//!
//! Called by [`crate::origin`]. Invariants: the body is whole before a worker is taken; an answer that is
//! complete when it is first looked at goes out with its length in one write; once a head is out,
//! a failure breaks the connection instead of pretending a whole answer.

mod frame;
pub(crate) mod relay;
mod stream;

use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::prefetch;
use crate::request::RequestContext;
use crate::response_head::ResponseHead;
use crate::route::Script;
use frame::Extra;
pub(crate) use frame::with_headers;
use outboard_buffer::RequestBody;
use outboard_http_server::Connection;
use outboard_http_server::body_reader::{self, Received};
use outboard_log::Reason;
use outboard_php_pool::exchange::Exchange;
use outboard_reactor::now_ms;
pub(crate) use relay::Begun;
use std::net::SocketAddr;
use std::rc::Rc;

/// Runs the script until its head has come; for a cache, until all has come that it takes, unless
/// the script has some of it sent before.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn begin_answer(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    script: &Script,
    for_cache: Option<&CacheRequirements>,
) -> BeforeHead<Begun> {
    let received = if script.internal {
        Received::none()
    } else {
        body_reader::body(connection, &app.config.limits).await?
    };
    let params = prefetch::params(connection, ctx, app, script.query.as_deref()).await?;
    let extra = Extra {
        params: &params,
        part: None,
        for_cache: for_cache.map(|wish| &wish.conditions[..]),
    };
    let frame = frame::request(connection, ctx, app, script, received.content_length, extra);
    let local_peer = connection.peer.local_peer(&connection.transport);
    let lease = submit(ctx.request_id, app, frame, received.body, local_peer)?;
    relay::begin(connection, ctx, app, lease, for_cache).await
}

/// A script that makes a part of a page.
pub(crate) struct SubRequest<'a> {
    /// Its path below the app's root.
    pub(crate) path: &'a [u8],
    pub(crate) query: &'a [u8],
}

/// Hands a sub-request to the pool: a GET with the client's own headers.
///
/// # Errors
/// Why the pool does not take it.
pub(crate) fn begin(
    connection: &Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    sub: SubRequest<'_>,
) -> Result<Lease, Reason> {
    let path = if app.worker_script.is_some() { App::WORKER_NAME } else { sub.path };
    let script = Script {
        path: path.to_vec(),
        path_info: Vec::new(),
        query: Some(sub.query.to_vec()),
        internal: true,
    };
    let params = [(b"OUTBOARD_COMPOSE".to_vec(), b"1".to_vec())];
    let extra = Extra { params: &params, part: Some(&sub), for_cache: None };
    let frame = frame::request(connection, ctx, app, &script, None, extra);
    let local_peer = connection.peer.local_peer(&connection.transport);
    submit(ctx.request_id, app, frame, RequestBody::empty(), local_peer)
}

/// What [`make`] sends to the worker: the present request as a GET for the whole page.
pub(crate) fn frame_for_cache(
    connection: &Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    script: &Script,
    wish: &CacheRequirements,
) -> Vec<u8> {
    let extra = Extra { params: &[], part: None, for_cache: Some(&wish.conditions) };
    let script = Script { internal: true, ..script.clone() };
    frame::request(connection, ctx, app, &script, None, extra)
}

/// Has a page made that no client waits for; `None` for one that is not whole within
/// `whole_bytes`.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn make(
    app: &Rc<App>,
    frame: Vec<u8>,
    request_id: u64,
    path: &[u8],
    whole_bytes: usize,
) -> BeforeHead<Option<(ResponseHead, Vec<u8>)>> {
    let lease = submit(request_id, app, frame, RequestBody::empty(), None)?;
    relay::make(app, lease, path, whole_bytes).await
}

fn submit(
    request_id: u64,
    app: &Rc<App>,
    frame: Vec<u8>,
    body: RequestBody,
    local_peer: Option<SocketAddr>,
) -> Result<Lease, Reason> {
    let memory = &app.memory.responses;
    if memory.is_full() {
        memory.refuse();
        return Err(Reason::MemoryFull);
    }
    let exchange = Exchange::new(
        frame,
        body,
        request_id,
        now_ms(),
        usize::try_from(app.config.limits.response_buffer_bytes).unwrap_or(usize::MAX),
    );
    let exchange = Rc::new(exchange.counted_in(memory));
    app.pool.submit(exchange.clone(), local_peer)?;
    Ok(Lease { app: app.clone(), exchange })
}

/// Sees to it that a request nobody waits for any more is taken back, however the wait ended.
#[derive(Debug)]
pub(crate) struct Lease {
    app: Rc<App>,
    exchange: Rc<Exchange>,
}

impl Lease {
    /// What the worker has answered so far.
    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.exchange.has_ended() {
            self.app.pool.abandon(&self.exchange);
        }
    }
}

/// A failure before anything was written: the client gets its status.
type BeforeHead<T> = Result<T, Reason>;
