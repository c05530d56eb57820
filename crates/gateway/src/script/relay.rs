//! From the worker's frames to the client's bytes. What writes those serves [`crate::proxy`] as well.

use super::stream::Stream;
use super::{BeforeHead, Lease};
use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::compression::Compression;
use crate::origin_response;
use crate::request::{RequestContext, ResponseSummary};
use crate::response_head::ResponseHead;
use outboard_http_server::COPY_BYTES;
use outboard_http_server::Connection;
use outboard_log::Level;
use outboard_log::Reason;
use outboard_page_cache::{Field, Fields, Response};
use outboard_php_pool::exchange::{Arrived, End, Exchange};
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// A page of this length says what it wants to say.
const FAILED_PAGE_BYTES: usize = 1 << 20;

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The head, under the app's rules unless a file is to be sent.
    pub(crate) head: ResponseHead,
    arrived: Arrived,
    lease: Lease,
}

/// Waits for the head, and for the rest if a cache may keep it and PHP does not want it sent.
pub(super) async fn begin(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    lease: Lease,
    for_cache: Option<&CacheRequirements>,
) -> BeforeHead<Begun> {
    let mut arrived = collect(connection, ctx, &lease.exchange).await?;
    let payload = arrived.head.take().ok_or(Reason::BadResponse)?;
    let mut head = ResponseHead::read(&payload).map_err(|bad| {
        app.log_text(Level::Error, ctx.request_id, &bad.why);
        Reason::BadResponse
    })?;
    if head.sendfile.is_none() && !app.config.headers.is_empty() {
        let path = connection.buffers().path.clone();
        head.headers.apply(&app.config.headers, app.below_prefix(&path));
    }
    let whole_bytes = for_cache.filter(|_| may_be_kept(&head)).map_or(0, |wish| wish.whole_bytes);
    // While memory is scarce, an answer is sent rather than collected.
    let memory = &app.memory.responses;
    while arrived.end.is_none()
        && !arrived.flush
        && arrived.body.len() < whole_bytes
        && !memory.is_scarce()
    {
        arrived.append(next(connection, &lease.exchange).await.ok_or(Reason::ClientGone)?);
    }
    Ok(Begun { head, arrived, lease })
}

fn may_be_kept(head: &ResponseHead) -> bool {
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = Response { status: head.status, fields: Fields(&fields) };
    head.sendfile.is_none() && !head.used_session && outboard_page_cache::may_be_stored(response)
}

/// Waits for all of an answer that no client waits for.
pub(super) async fn make(
    app: &App,
    lease: Lease,
    path: &[u8],
    whole_bytes: usize,
) -> BeforeHead<Option<(ResponseHead, Vec<u8>)>> {
    let mut whole = Arrived::default();
    while whole.end.is_none() {
        let mut more = std::future::poll_fn(|_| match lease.exchange.take() {
            Some(arrived) => Poll::Ready(arrived),
            None => Poll::Pending,
        })
        .await;
        whole.head = whole.head.or(more.head.take());
        whole.append(more);
        if whole.body.len() > whole_bytes || app.memory.responses.is_full() {
            return Ok(None);
        }
    }
    if let Some(End::Failed(reason)) = whole.end {
        return Err(reason);
    }
    let payload = whole.head.ok_or(Reason::BadResponse)?;
    let mut head = ResponseHead::read(&payload).map_err(|_| Reason::BadResponse)?;
    if head.sendfile.is_some() {
        return Ok(None);
    }
    head.headers.apply(&app.config.headers, app.below_prefix(path));
    Ok(Some((head, whole.body)))
}

impl Begun {
    /// The body, if all of it has come.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        let is_whole = self.head.sendfile.is_none() && self.arrived.end == Some(End::Complete);
        is_whole.then_some(&self.arrived.body)
    }

    /// In development, what PHP said of its failure when the visitor would see nothing of it: the
    /// answer is an error's, and there is no page, or one that breaks off.
    pub(crate) async fn failure(
        &mut self,
        connection: &mut Connection,
        ctx: &RequestContext,
    ) -> Option<String> {
        if self.head.status < 500 || self.head.sendfile.is_some() {
            return None;
        }
        ctx.gateway.development()?;
        let arrived = &mut self.arrived;
        while arrived.end.is_none() && !arrived.flush && arrived.body.len() < FAILED_PAGE_BYTES {
            arrived.append(next(connection, &self.lease.exchange).await?);
        }
        let words = self.lease.exchange.words();
        let body = arrived.body.trim_ascii();
        let is_fatal = words.contains("PHP Fatal error: ") || words.contains("PHP Parse error: ");
        let breaks_off = is_fatal && memchr::memmem::find(body, b"</html>").is_none();
        let is_untold = !words.is_empty() && (body.is_empty() || breaks_off);
        (is_untold && arrived.end == Some(End::Complete)).then_some(words)
    }

    /// How much of the body has come.
    pub(crate) fn body_bytes(&self) -> usize {
        self.arrived.body.len()
    }

    /// Relays it.
    pub(crate) async fn send(
        self,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &Rc<App>,
    ) -> BeforeHead<ResponseSummary> {
        let Self { mut head, arrived, lease } = self;
        let known = match arrived.end {
            Some(End::Failed(reason)) => return Err(reason),
            Some(End::Complete) => Some(arrived.body.len() as u64),
            None => head.content_length,
        };
        let compression = Compression::of(connection, ctx, app, &mut head, known);
        if arrived.end.is_none() {
            let stream = Stream { app, head: &head, exchange: &lease.exchange, compression };
            return Ok(stream.send(connection, ctx, arrived).await);
        }
        let Arrived { body, held, .. } = arrived;
        let body = match compression {
            None => body,
            Some(compression) => compression.end(body).await.map_err(no_memory)?,
        };
        if body.len() <= COPY_BYTES {
            return Ok(origin_response::write_complete(connection, ctx, &head, &body).await);
        }
        Ok(origin_response::write_large(
            connection,
            ctx,
            &head,
            (body, held),
            &app.memory.responses,
        )
        .await)
    }
}

/// Waits for the head and whatever comes with it; passes on what is to be sent before.
async fn collect(
    connection: &mut Connection,
    ctx: &RequestContext,
    exchange: &Exchange,
) -> BeforeHead<Arrived> {
    loop {
        let arrived = next(connection, exchange).await.ok_or(Reason::ClientGone)?;
        for payload in &arrived.interim {
            send_interim(connection, ctx, payload).await?;
        }
        match (&arrived.head, arrived.end) {
            (None, Some(End::Failed(reason))) => return Err(reason),
            (None, None) if !arrived.interim.is_empty() => {}
            _ => return Ok(arrived),
        }
    }
}

/// Writes an interim answer, which clients of HTTP/1.0 do not know (RFC 9110 15.2).
async fn send_interim(
    connection: &mut Connection,
    ctx: &RequestContext,
    payload: &[u8],
) -> BeforeHead<()> {
    match ResponseHead::read_interim(payload) {
        Some(head) => origin_response::write_interim(connection, ctx, &head).await,
        None => Ok(()),
    }
}

/// The next news of the exchange; `None` when the client has gone.
pub(super) async fn next(connection: &Connection, exchange: &Exchange) -> Option<Arrived> {
    std::future::poll_fn(|_| {
        if let Some(arrived) = exchange.take() {
            return Poll::Ready(Some(arrived));
        }
        connection.poll_gone().map(|()| None)
    })
    .await
}

fn no_memory(_: io::Error) -> Reason {
    Reason::Internal
}
