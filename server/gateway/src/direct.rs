//! Direct connections of an app: which requests are templates, where a connection may go, and what comes back from there.
//!
//! Called by [`crate::script`]. Invariant: a connection goes to a worker only if nothing but
//! host and path decides about its requests: every setting that could is excluded by name
//! ([`outboard_config::App::excludes_direct`]), and every fact of the connection here.

use crate::app::App;
use crate::gateway::Gateway;
use crate::request::Request;
use crate::route::Script;
use outboard_http_server::Client;
use outboard_http_server::direct::{DirectAnswer, DirectConnection, DirectEvent, DirectPlace};
use outboard_log::Wall;
use outboard_page_cache::COMPRESS_MIN_BYTES;
use outboard_php_pool::exchange::{Exchange, ExchangeSettings};
use outboard_php_pool::pool;
use outboard_ring::direct::Greeting;
use std::rc::Rc;
use std::task::Poll;

/// Whether requests that are like this one may be answered without the gateway.
pub(crate) fn is_template(request: &Request<'_>, app: &App, script: &Script) -> bool {
    if !app.has_direct {
        return false;
    }
    let generation = request.gateway.generation();
    let client = &request.client;
    request.is_plain_http1()
        && !script.internal
        && script.query.is_none()
        && generation.apps.len() == 1
        && generation.tracer.is_none()
        // A worker could claim that its client, who may be trusted, has sent a request to the store.
        && generation.entities.as_ref().is_none_or(|entities| entities.config.path.is_none())
        && request.gateway.development().is_none()
        && !client.listener.forwarding.has_proxies()
        && !client.listener.redirects_to_https
}

/// Offers the connection of a request that a worker has answered.
pub(crate) fn offer(request: &Request<'_>, app: &Rc<App>, exchange: &Exchange) {
    let template = exchange.frame.clone();
    let first_id = request.gateway.reserve_request_ids();
    let place = Place { app: app.clone(), template, first_id };
    request.direct.offer(Box::new(place));
}

/// The workers of an app, of which one may get the connection.
struct Place {
    app: Rc<App>,
    /// The frame of a request.
    template: Vec<u8>,
    first_id: u64,
}

impl DirectPlace for Place {
    fn begin(self: Box<Self>, client: &Client, requests: u32) -> Option<Box<dyn DirectConnection>> {
        let Self { app, template, first_id } = *self;
        let limits = &app.config.limits;
        let head = client.context.head_limits();
        let limit = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (server_addr, server_port) = client.peer.local(&client.transport);
        let greeting = Greeting {
            slot: 0,
            generation: 0,
            requests: requests.min(Gateway::RESERVED_IDS),
            request_id: first_id,
            request_line_bytes: limit(head.request_line_bytes),
            head_bytes: limit(head.header_bytes),
            header_count: limit(head.header_count),
            remote_addr: client.peer.text.to_string(),
            remote_port: client.peer.port(),
            server_addr: server_addr.to_owned(),
            server_port,
            compress_min_bytes: if app.config.compress { COMPRESS_MIN_BYTES as u32 } else { 0 },
            body_bytes: limits.body_bytes,
        };
        let settings = ExchangeSettings {
            buffer_bytes: usize::try_from(limits.response_buffer_bytes).unwrap_or(usize::MAX),
            memory: app.memory.responses.clone(),
            longest_ms: limits.request_deadline_ms,
        };
        let socket = client.transport.share()?;
        let connection = app.pool().park(&template, socket, greeting, settings)?;
        Some(Box::new(Elsewhere { app, connection }))
    }
}

/// A connection whose socket a worker has.
struct Elsewhere {
    app: Rc<App>,
    connection: pool::DirectConnection,
}

impl DirectConnection for Elsewhere {
    fn poll_event(&mut self) -> Poll<DirectEvent> {
        let wall = |unix_us| Wall { unix_us };
        self.connection.poll_event().map(|event| match event {
            pool::DirectEvent::Answered { request, request_id, received_us, answered } => {
                let answer = DirectAnswer {
                    request_id,
                    received: wall(received_us),
                    ended: wall(answered.ended_us.max(received_us)),
                    status: answered.status,
                    body_bytes: answered.body_bytes,
                };
                DirectEvent::Answered(request, answer)
            }
            pool::DirectEvent::Adopted { request, received_us, exchange } => {
                let exchange =
                    Box::new(Adopted { app: self.app.clone(), exchange: Some(exchange) });
                DirectEvent::Adopted { request, received: wall(received_us), exchange }
            }
            pool::DirectEvent::Returned { unsent, unread, held } => {
                DirectEvent::Returned { unsent, unread, held }
            }
            pool::DirectEvent::Lost => DirectEvent::Lost,
        })
    }

    fn take_back(&self) {
        self.connection.take_back();
    }
}

/// A request that a worker runs already. Dropped, it is abandoned.
struct Adopted {
    app: Rc<App>,
    exchange: Option<Rc<Exchange>>,
}

impl Drop for Adopted {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            self.app.seat.abandon(&exchange);
        }
    }
}

/// The exchange of the current request if a worker runs it already, and the app of that worker. After a reload that is an
/// earlier generation's: a request runs once, wherever it has begun.
pub(crate) fn take_adopted(request: &Request<'_>) -> Option<(Rc<App>, Rc<Exchange>)> {
    let mut adopted = request.direct.take_adopted()?.downcast::<Adopted>().ok()?;
    Some((adopted.app.clone(), adopted.exchange.take()?))
}
