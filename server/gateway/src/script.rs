//! Responses of PHP scripts: the request is submitted to the pool, and the worker's response
//! relayed.
//!
//! Called by [`crate::origin`]. Invariants: the body is complete before a worker is occupied; a
//! response that is complete when it is first received has Content-Length and is one write; after
//! the head was sent, a failure breaks the connection, so that the client does not take the
//! response for a complete one.

mod frame;
mod php_call;
pub(crate) mod relay;
mod stream;

use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::debugging;
use crate::direct;
use crate::prefetch;
use crate::request::Request;
use crate::request_memory::RequestMemory;
use crate::response_head::ResponseHead;
use crate::route::{PathBytes, Script};
use frame::Extra;
pub(crate) use frame::with_headers;
use outboard_buffer::RequestBody;
use outboard_http_server::ResponseWriter;
use outboard_http_server::body_reader::{self, Received};
use outboard_log::Reason;
use outboard_php_pool::exchange::Exchange;
use outboard_php_pool::renewal::seat::PoolSeat;
use outboard_reactor::now_ms;
use php_call::PhpCall;
pub(crate) use relay::StartedResponse;
use std::net::SocketAddr;
use std::rc::Rc;

/// Runs the script and waits for the head; for a cache, for as much of the body as it can store,
/// unless the script flushes its output.
///
/// # Errors
/// Why there is no response.
pub(crate) async fn start(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    script: &Script,
    for_cache: Option<&CacheRequirements>,
) -> BeforeHead<StartedResponse> {
    let received = if script.internal {
        Received::none()
    } else {
        body_reader::body(request, response, &app.config.limits).await?
    };
    let call = PhpCall::of(request);
    if let Some((worker_app, exchange)) = direct::take_adopted(request) {
        let lease = Lease::adopted(exchange, worker_app, call);
        return relay::start(request, response, app, lease, for_cache).await;
    }
    let params = prefetch::params(request, app, script.query.as_deref()).await?;
    let extra = Extra {
        params: &params,
        part: None,
        trace: call.scope(),
        for_cache: for_cache.map(|cache| &cache.conditions[..]),
        is_template: for_cache.is_none() && direct::is_template(request, app, script),
    };
    let mut memory = app.spare_requests.take().unwrap_or_default();
    let frame = memory.take_frame();
    let length = received.content_length;
    let frame = frame::request(frame, request, app, script, length, extra);
    let local_peer = request.client.peer.local_peer(&request.client.transport);
    let place = Place { app, seat: seat_for(request, app, &frame), local_peer };
    let lease = submit(memory, request.request_id, place, frame, received.body, call)?;
    relay::start(request, response, app, lease, for_cache).await
}

/// The place of the pool for a request with this frame.
fn seat_for(request: &Request<'_>, app: &App, frame: &[u8]) -> Rc<PoolSeat> {
    debugging::seat(request, app).cloned().unwrap_or_else(|| app.seat_for(frame))
}

/// A script that renders a part of a page.
pub(crate) struct SubRequest<'a> {
    /// Its path below the app's root.
    pub(crate) path: &'a [u8],
    pub(crate) query: &'a [u8],
}

/// Submits the request of a part to the pool: a GET with the client's headers.
///
/// # Errors
/// Why the pool refuses it.
pub(crate) fn start_part(
    request: &Request<'_>,
    app: &Rc<App>,
    sub: SubRequest<'_>,
    params: &[(Vec<u8>, Vec<u8>)],
) -> Result<Lease, Reason> {
    let path = if app.worker_script.is_some() { App::WORKER_NAME } else { sub.path };
    let script = Script {
        path: path.into(),
        path_info: PathBytes::new(),
        query: Some(sub.query.to_vec()),
        internal: true,
    };
    let call = PhpCall::of(request);
    let extra = Extra {
        params,
        part: Some(&sub),
        trace: call.scope(),
        for_cache: None,
        is_template: false,
    };
    let frame = frame::request(Vec::new(), request, app, &script, None, extra);
    let local_peer = request.client.peer.local_peer(&request.client.transport);
    let place = Place { app, seat: seat_for(request, app, &frame), local_peer };
    submit(Box::default(), request.request_id, place, frame, RequestBody::empty(), call)
}

/// The frame for [`render`]: the current request as a GET for the complete page.
pub(crate) fn frame_for_cache(
    request: &Request<'_>,
    app: &Rc<App>,
    script: &Script,
    requirements: &CacheRequirements,
) -> Vec<u8> {
    let for_cache = Some(&requirements.conditions[..]);
    let extra = Extra { params: &[], part: None, trace: None, for_cache, is_template: false };
    let script = Script { internal: true, ..script.clone() };
    frame::request(Vec::new(), request, app, &script, None, extra)
}

/// Renders a page that no client waits for; `None` if it is longer than `whole_bytes`.
///
/// # Errors
/// Why there is no response.
pub(crate) async fn render(
    app: &Rc<App>,
    frame: Vec<u8>,
    request_id: u64,
    path: &[u8],
    whole_bytes: usize,
) -> BeforeHead<Option<(ResponseHead, Vec<u8>)>> {
    let call = PhpCall::in_background(app);
    let place = Place { app, seat: app.seat_for(&frame), local_peer: None };
    let lease = submit(Box::default(), request_id, place, frame, RequestBody::empty(), call)?;
    receive(app, lease, path, whole_bytes).await
}

/// Waits for a complete response; `None` if it is longer than `whole_bytes`.
///
/// # Errors
/// Why there is no response.
pub(crate) async fn receive(
    app: &App,
    lease: Lease,
    path: &[u8],
    whole_bytes: usize,
) -> BeforeHead<Option<(ResponseHead, Vec<u8>)>> {
    relay::render(app, lease, path, whole_bytes).await
}

/// Where a request goes, and where it is from.
struct Place<'a> {
    app: &'a Rc<App>,
    seat: Rc<PoolSeat>,
    local_peer: Option<SocketAddr>,
}

fn submit(
    mut memory: Box<RequestMemory>,
    request_id: u64,
    Place { app, seat, local_peer }: Place<'_>,
    frame: Vec<u8>,
    body: RequestBody,
    call: PhpCall,
) -> Result<Lease, Reason> {
    let account = &app.memory.responses;
    if account.is_full() {
        account.refuse();
        return Err(Reason::MemoryFull);
    }
    let exchange = Exchange::new(
        frame,
        body,
        request_id,
        now_ms(),
        usize::try_from(app.config.limits.response_buffer_bytes).unwrap_or(usize::MAX),
    );
    let exchange = exchange.counted_in(account).traced(call.scope().cloned());
    let exchange = memory.start(exchange).clone();
    let lease = Lease { app: app.clone(), seat, memory: Some(memory), call };
    lease.seat.submit(exchange, local_peer)?;
    Ok(lease)
}

/// A submitted request; dropping it abandons the request unless it has ended.
#[derive(Debug)]
pub(crate) struct Lease {
    app: Rc<App>,
    seat: Rc<PoolSeat>,
    /// `None` while it is dropped.
    memory: Option<Box<RequestMemory>>,
    call: PhpCall,
}

impl Lease {
    /// Of a request that a worker runs already.
    fn adopted(exchange: Rc<Exchange>, app: Rc<App>, call: PhpCall) -> Self {
        let mut memory = app.spare_requests.take().unwrap_or_default();
        memory.adopt(exchange);
        Self { seat: app.seat.clone(), app, memory: Some(memory), call }
    }

    /// The response so far.
    pub(crate) fn exchange(&self) -> &Exchange {
        self.memory().exchange()
    }

    fn memory(&self) -> &RequestMemory {
        self.memory.as_ref().expect("it is not being dropped")
    }

    fn memory_mut(&mut self) -> &mut RequestMemory {
        self.memory.as_mut().expect("it is not being dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut memory) = self.memory.take() else { return };
        if !memory.exchange().has_ended() {
            self.seat.abandon(memory.exchange());
        }
        self.call.end(&self.app, memory.exchange(), memory.head.status);
        memory.clear();
        self.app.spare_requests.give_back(memory, now_ms());
    }
}

/// A failure before the head was sent: the client gets its status.
type BeforeHead<T> = Result<T, Reason>;

#[cfg(test)]
mod tests;
