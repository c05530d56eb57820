//! [`StartedResponse`]: relays the response of a worker to the client.
//!
//! Called by [`super`].

use super::stream::Stream;
use super::{BeforeHead, Lease};
use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::compression::Compression;
use crate::direct;
use crate::origin_response;
use crate::request::{Request, ResponseSummary};
use crate::request_memory::RequestMemory;
use crate::response_head::ResponseHead;
use crate::server_timing;
use outboard_config::ConditionSet;
use outboard_http_server::{COPY_BYTES, Client, ResponseWriter};
use outboard_log::{Level, Reason, Wall};
use outboard_page_cache::{Field, Fields, Response};
use outboard_php_pool::exchange::{End, Exchange, ResponseData};
use std::rc::Rc;
use std::task::Poll;

/// Longer error pages are sent as they are.
const MAX_ERROR_PAGE_BYTES: usize = 1 << 20;

/// A response whose head has arrived. It is read, with the app's header rules applied unless a file is
/// sent.
#[derive(Debug)]
pub(crate) struct StartedResponse(Lease);

/// Waits for the head, and for the body if the response is cacheable and PHP does not flush it.
pub(super) async fn start(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    mut lease: Lease,
    for_cache: Option<&CacheRequirements>,
) -> BeforeHead<StartedResponse> {
    let arrived = collect(request, response, lease.exchange()).await?;
    let memory = lease.memory_mut();
    memory.arrived = arrived;
    if memory.arrived.head.is_empty() {
        return Err(Reason::BadResponse);
    }
    memory.head.refill(&memory.arrived.head).map_err(|bad| {
        app.log_text(Level::Error, request.request_id, &bad.text);
        Reason::BadResponse
    })?;
    if let Some(text) = memory.head.take_dropped() {
        app.log_text(Level::Warn, request.request_id, &text);
    }
    if memory.head.sendfile.is_none() && !app.config.headers.is_empty() {
        request.apply_rules(app, &mut memory.head.headers, memory.head.status);
    }
    if request.gateway.development().is_some() {
        add_server_timing(&mut lease);
    }
    let memory = lease.memory_mut();
    let whole_bytes =
        for_cache.filter(|_| is_cacheable(&memory.head)).map_or(0, |cache| cache.whole_bytes);
    let may_wait = |arrived: &ResponseData| {
        let is_over = arrived.end.is_some() || arrived.flush || arrived.body.len() >= whole_bytes;
        // If memory is scarce, the response is sent instead of collected.
        !is_over && !app.memory.responses.is_scarce()
    };
    while may_wait(&lease.memory().arrived) {
        let more = next(&request.client, lease.exchange()).await.ok_or(Reason::ClientGone)?;
        lease.memory_mut().arrived.append(more);
    }
    Ok(StartedResponse(lease))
}

/// Adds how long the request has waited and PHP has worked (W3C Server Timing), in development.
fn add_server_timing(lease: &mut Lease) {
    let course = &lease.exchange().times;
    let Some(started_us) = course.started_us() else { return };
    let took_us =
        |from_us: u64, to_us: u64| server_timing::milliseconds(to_us.saturating_sub(from_us));
    let queue = took_us(course.submitted_us(), started_us);
    let php = took_us(started_us, Wall::now().unix_us);
    let value = format!("queue;dur={queue}, php;dur={php}");
    server_timing::add(&mut lease.memory_mut().head.headers, &value);
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
        let mut more = std::future::poll_fn(|_| match lease.exchange().take() {
            Some(arrived) => Poll::Ready(arrived),
            None => Poll::Pending,
        })
        .await;
        if whole.head.is_empty() {
            whole.head = std::mem::take(&mut more.head);
        }
        whole.append(more);
        if whole.body.len() > whole_bytes || app.memory.responses.is_full() {
            return Ok(None);
        }
    }
    if let Some(End::Failed(reason)) = whole.end {
        return Err(reason);
    }
    let mut head = ResponseHead::read(&whole.head).map_err(|_| Reason::BadResponse)?;
    if head.sendfile.is_some() || !lease.exchange().is_handled() {
        return Ok(None);
    }
    let path = app.below_prefix(path);
    head.headers.apply(&app.config.headers, path, head.status, ConditionSet::UNKNOWN);
    Ok(Some((head, whole.body)))
}

impl StartedResponse {
    pub(crate) fn head(&self) -> &ResponseHead {
        &self.0.memory().head
    }

    pub(crate) fn head_mut(&mut self) -> &mut ResponseHead {
        &mut self.0.memory_mut().head
    }

    /// Whether a complete response is not what the script meant, so that it is for this client alone.
    pub(crate) fn is_unhandled(&self) -> bool {
        self.0.memory().arrived.end.is_some() && !self.0.exchange().is_handled()
    }

    /// The body, if it is complete and the script has handled the request. A response with trailers is sent as it came, and is not stored.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        let RequestMemory { head, arrived, .. } = self.0.memory();
        let is_whole = head.sendfile.is_none()
            && arrived.end == Some(End::Complete)
            && arrived.trailers.is_empty()
            && self.0.exchange().is_handled();
        is_whole.then_some(&arrived.body)
    }

    /// In development, PHP's error message if the developer would not see it: the response is an
    /// error without a page, or with an incomplete one.
    pub(crate) async fn failure(&mut self, request: &Request<'_>) -> Option<String> {
        if self.head().status < 500 || self.head().sendfile.is_some() {
            return None;
        }
        request.gateway.development()?;
        let lease = &mut self.0;
        let may_wait = |arrived: &ResponseData| {
            arrived.end.is_none() && !arrived.flush && arrived.body.len() < MAX_ERROR_PAGE_BYTES
        };
        while may_wait(&lease.memory().arrived) {
            let more = next(&request.client, lease.exchange()).await?;
            lease.memory_mut().arrived.append(more);
        }
        let message = lease.exchange().log_lines();
        let arrived = &lease.memory().arrived;
        let body = arrived.body.trim_ascii();
        let is_fatal =
            message.contains("PHP Fatal error: ") || message.contains("PHP Parse error: ");
        let is_incomplete = is_fatal && memchr::memmem::find(body, b"</html>").is_none();
        let is_unreported = !message.is_empty() && (body.is_empty() || is_incomplete);
        (is_unreported && arrived.end == Some(End::Complete)).then_some(message)
    }

    /// The length of the body so far.
    pub(crate) fn body_bytes(&self) -> usize {
        self.0.memory().arrived.body.len()
    }

    /// Sends it to the client.
    pub(crate) async fn send(
        self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
        app: &Rc<App>,
    ) -> BeforeHead<ResponseSummary> {
        let Self(mut lease) = self;
        if app.has_direct && lease.exchange().is_template() {
            direct::offer(request, app, lease.exchange());
        }
        let RequestMemory { head, arrived, .. } = lease.memory_mut();
        let has_trailers = !arrived.trailers.is_empty();
        if has_trailers {
            // Only a body without a length has room for them.
            head.content_length = None;
        }
        let known = match arrived.end {
            Some(End::Failed(reason)) => return Err(reason),
            Some(End::Complete) if !has_trailers => Some(arrived.body.len() as u64),
            _ => head.content_length,
        };
        let mut compression = Compression::of(request, app, head, known);
        if arrived.end.is_none() || has_trailers {
            let first = std::mem::take(arrived);
            let (head, exchange) = (&lease.memory().head, lease.exchange());
            let stream = Stream { app, head, exchange, compression };
            return Ok(stream.send(request, response, first).await);
        }
        let body = std::mem::take(&mut arrived.body);
        let body = compression.encode(&request.client, body, true).await?;
        if body.len() <= COPY_BYTES {
            let written = origin_response::write_complete(request, response, head, &body).await;
            arrived.body = body;
            return Ok(written);
        }
        let body = (body, arrived.held.take());
        let account = &app.memory.responses;
        Ok(origin_response::write_large(request, response, head, body, account).await)
    }
}

/// Waits for the head and what arrives with it; relays interim responses.
async fn collect(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    exchange: &Exchange,
) -> BeforeHead<ResponseData> {
    loop {
        let arrived = next(&request.client, exchange).await.ok_or(Reason::ClientGone)?;
        for payload in &arrived.interim {
            send_interim(response, payload).await?;
        }
        match (arrived.head.is_empty(), arrived.end) {
            (true, Some(End::Failed(reason))) => return Err(reason),
            (true, None) if !arrived.interim.is_empty() => {}
            _ => return Ok(arrived),
        }
    }
}

/// Relays an interim response.
async fn send_interim(response: &mut ResponseWriter, payload: &[u8]) -> BeforeHead<()> {
    match ResponseHead::read_interim(payload) {
        Some(head) => origin_response::write_interim(response, &head).await,
        None => Ok(()),
    }
}

/// The next part of the response; `None` if the client is gone.
async fn next(client: &Client, exchange: &Exchange) -> Option<ResponseData> {
    std::future::poll_fn(|_| {
        if let Some(arrived) = exchange.take() {
            return Poll::Ready(Some(arrived));
        }
        client.poll_gone().map(|()| None)
    })
    .await
}
