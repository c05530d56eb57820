//! [`StartedResponse`]: relays the response of a worker to the client.
//!
//! Called by [`super`].

use super::stream::Stream;
use super::{BeforeHead, Lease};
use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::compression::Compression;
use crate::origin_response;
use crate::request::{RequestContext, ResponseSummary};
use crate::response_head::ResponseHead;
use outboard_http_server::{COPY_BYTES, Connection};
use outboard_log::{Level, Reason};
use outboard_page_cache::{Field, Fields, Response};
use outboard_php_pool::exchange::{End, Exchange, ResponseData};
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// Longer error pages are sent as they are.
const MAX_ERROR_PAGE_BYTES: usize = 1 << 20;

/// A response whose head has arrived.
#[derive(Debug)]
pub(crate) struct StartedResponse {
    /// The head, with the app's header rules applied unless a file is sent.
    pub(crate) head: ResponseHead,
    arrived: ResponseData,
    lease: Lease,
}

/// Waits for the head, and for the body if the response is cacheable and PHP does not flush it.
pub(super) async fn start(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    lease: Lease,
    for_cache: Option<&CacheRequirements>,
) -> BeforeHead<StartedResponse> {
    let mut arrived = collect(connection, ctx, &lease.exchange).await?;
    let payload = arrived.head.take().ok_or(Reason::BadResponse)?;
    let mut head = ResponseHead::read(&payload).map_err(|bad| {
        app.log_text(Level::Error, ctx.request_id, &bad.text);
        Reason::BadResponse
    })?;
    if head.sendfile.is_none() && !app.config.headers.is_empty() {
        let path = connection.buffers().path.clone();
        head.headers.apply(&app.config.headers, app.below_prefix(&path));
    }
    let whole_bytes =
        for_cache.filter(|_| is_cacheable(&head)).map_or(0, |cache| cache.whole_bytes);
    // If memory is scarce, the response is sent instead of collected.
    let memory = &app.memory.responses;
    while arrived.end.is_none()
        && !arrived.flush
        && arrived.body.len() < whole_bytes
        && !memory.is_scarce()
    {
        arrived.append(next(connection, &lease.exchange).await.ok_or(Reason::ClientGone)?);
    }
    Ok(StartedResponse { head, arrived, lease })
}

fn is_cacheable(head: &ResponseHead) -> bool {
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = Response { status: head.status, fields: Fields(&fields) };
    head.sendfile.is_none() && !head.used_session && outboard_page_cache::may_be_stored(response)
}

/// Waits for a complete response that no client waits for.
pub(super) async fn render(
    app: &App,
    lease: Lease,
    path: &[u8],
    whole_bytes: usize,
) -> BeforeHead<Option<(ResponseHead, Vec<u8>)>> {
    let mut whole = ResponseData::default();
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

impl StartedResponse {
    /// The body, if it is complete.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        let is_whole = self.head.sendfile.is_none() && self.arrived.end == Some(End::Complete);
        is_whole.then_some(&self.arrived.body)
    }

    /// In development, PHP's error message if the developer would not see it: the response is an
    /// error without a page, or with an incomplete one.
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
        while arrived.end.is_none() && !arrived.flush && arrived.body.len() < MAX_ERROR_PAGE_BYTES {
            arrived.append(next(connection, &self.lease.exchange).await?);
        }
        let message = self.lease.exchange.log_lines();
        let body = arrived.body.trim_ascii();
        let is_fatal =
            message.contains("PHP Fatal error: ") || message.contains("PHP Parse error: ");
        let is_incomplete = is_fatal && memchr::memmem::find(body, b"</html>").is_none();
        let is_unreported = !message.is_empty() && (body.is_empty() || is_incomplete);
        (is_unreported && arrived.end == Some(End::Complete)).then_some(message)
    }

    /// The length of the body so far.
    pub(crate) fn body_bytes(&self) -> usize {
        self.arrived.body.len()
    }

    /// Sends it to the client.
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
        let ResponseData { body, held, .. } = arrived;
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

/// Waits for the head and what arrives with it; relays interim responses.
async fn collect(
    connection: &mut Connection,
    ctx: &RequestContext,
    exchange: &Exchange,
) -> BeforeHead<ResponseData> {
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

/// Relays an interim response.
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

/// The next part of the response; `None` if the client is gone.
pub(super) async fn next(connection: &Connection, exchange: &Exchange) -> Option<ResponseData> {
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
