//! [`StartedResponse`]: a response of another server whose head has arrived.
//!
//! Created by the reverse proxy, sent by [`crate::origin`]. Invariant: what is stored of the body is counted.

use super::inflow::{Inflow, Next};
use super::log_failure;
use crate::app::App;
use crate::compression::Compression;
use crate::origin_response;
use crate::request::{Request, ResponseSummary};
use crate::response_head::ResponseHead;
use crate::route::Proxied;
use crate::upstream_call::UpstreamCall;
use outboard_buffer::Held;
use outboard_http_server::{BodyWriter, ResponseWriter};
use outboard_log::Reason;
use outboard_reactor::clear_deadline;
use outboard_upstream::{Error, Response};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// A response whose head has arrived.
#[derive(Debug)]
pub(crate) struct StartedResponse {
    /// The head, under the app's rules.
    pub(crate) head: ResponseHead,
    /// The body so far.
    pub(super) body: Vec<u8>,
    /// Counts `body`.
    held: Held,
    /// The rest of it.
    pub(super) response: Response,
    timeout_ms: u64,
    /// Whether the rest is spooled for a slow client.
    is_buffered: bool,
    /// It ends with the response.
    pub(super) call: Option<UpstreamCall>,
}

impl StartedResponse {
    pub(super) fn new(
        app: &App,
        proxied: &Proxied,
        head: ResponseHead,
        response: Response,
        timeout_ms: u64,
    ) -> Self {
        let is_streamed = response.header(b"x-accel-buffering") == Some(b"no");
        let is_buffered = app.config.proxies[proxied.number].buffers_response && !is_streamed;
        Self { is_buffered, ..Self::unsent(app, head, response, timeout_ms) }
    }

    /// One that no client waits for.
    pub(super) fn unsent(
        app: &App,
        head: ResponseHead,
        response: Response,
        timeout_ms: u64,
    ) -> Self {
        let held = app.memory.responses.hold(0);
        let (body, is_buffered, call) = (Vec::new(), false, None);
        Self { head, body, held, response, timeout_ms, is_buffered, call }
    }

    /// The body, if it is complete.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        self.response.is_over().then_some(&self.body)
    }

    /// The length of the body so far.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) async fn read(&mut self) -> Result<(), Error> {
        self.response.wait_at_most(self.timeout_ms);
        let read = self.response.read(&mut self.body).await;
        self.held.set(self.body.len());
        read.map(drop)
    }

    /// Reads what has arrived with the head, which is often the complete body.
    pub(super) async fn read_available(&mut self) -> Result<(), Error> {
        if self.response.is_over() {
            return Ok(());
        }
        let read = poll_fn(|context| match pin!(self.read()).poll(context) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => Poll::Ready(Ok(())),
        });
        let outcome = read.await;
        clear_deadline();
        outcome
    }

    /// The server has failed within the body.
    pub(super) fn broken(&self, request: &Request<'_>, app: &App, error: &Error) -> Reason {
        if let Some(call) = &self.call {
            call.broke_off(error);
        }
        log_failure(app, request.request_id, error)
    }

    /// Sends it to the client.
    pub(crate) async fn send(
        self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
        app: &App,
    ) -> ResponseSummary {
        let Self { mut head, body, held, response: mut received, timeout_ms, is_buffered, call } =
            self;
        add_cookie(&mut head, call.as_ref(), request);
        let is_whole = received.is_over();
        let known = if is_whole { Some(body.len() as u64) } else { head.content_length };
        let mut compression = Compression::of(request, app, &mut head, known);
        let status = head.status;
        let mut piece = match compression.encode(&request.client, body, is_whole).await {
            Ok(piece) => piece,
            Err(reason) => {
                response.note_lost(Err(reason));
                return ResponseSummary::broken(status, 0);
            }
        };
        if is_whole {
            return origin_response::write_complete(request, response, &head, &piece).await;
        }
        received.count_as_response();
        let account = &app.memory.responses;
        let turns = request.gateway.read_turns.clone();
        let inflow = Inflow::start(received, timeout_ms, account, turns);
        let framing = response.request.framing(status, head.content_length);
        let facts = head.facts(response.request, framing);
        response.put_head(facts, &head.headers.bytes);
        let mut writer = BodyWriter::new(framing);
        let mut held = Some(held);
        loop {
            let is_put = match is_buffered {
                true => writer.write_or_spool(response, &piece, account).await,
                false => writer.write(response, &piece).await,
            };
            drop((piece, held.take()));
            if !is_put {
                return ResponseSummary::broken(status, writer.written_bytes());
            }
            let next = match inflow.next(response).await {
                Ok(Next::Piece(bytes)) => compression.encode(&request.client, bytes, false).await,
                Ok(Next::End) => {
                    match compression.encode(&request.client, Vec::new(), true).await {
                        Ok(end) => {
                            let keep_alive = facts.keep_alive;
                            let written = writer.finish(response, &end, keep_alive, account).await;
                            let body_bytes = writer.written_bytes();
                            return ResponseSummary { written, status, body_bytes };
                        }
                        Err(reason) => Err(reason),
                    }
                }
                Ok(Next::Broken(error)) => {
                    note_broken(request, app, call.as_ref(), &error);
                    return ResponseSummary::broken(status, writer.written_bytes());
                }
                Err(reason) => Err(reason),
            };
            piece = match next {
                Ok(next) => next,
                Err(reason) => {
                    response.note_lost(Err(reason));
                    return ResponseSummary::broken(status, writer.written_bytes());
                }
            };
        }
    }
}

/// The cookie that binds the client to its upstream is for it alone, and so not part of a stored response.
fn add_cookie(head: &mut ResponseHead, call: Option<&UpstreamCall>, request: &Request<'_>) {
    if let Some(cookie) = call.and_then(|call| call.cookie(request.forwarded.https)) {
        let _ = head.headers.add(b"Set-Cookie", cookie.as_bytes());
    }
}

/// The upstream has broken off in the middle of its response.
fn note_broken(request: &Request<'_>, app: &App, call: Option<&UpstreamCall>, error: &Error) {
    if let Some(call) = call {
        call.broke_off(error);
    }
    let reason = log_failure(app, request.request_id, error);
    request.client.context.count_refusal(reason);
}
