//! The accounts of requests to which workers have responded on direct connections.
//!
//! Called by [`crate::dispatch`]. Invariant: such a request is counted and logged once, as any other.

use crate::admission;
use crate::gateway::Gateway;
use crate::observe;
use crate::request::{Request, ResponseSummary};
use outboard_http_server::direct::DirectAnswer;
use outboard_http_server::{Request as HttpRequest, Written};
use std::rc::Rc;

/// Records a request to which a worker has responded; returns whether its connection may stay there.
pub(crate) fn record(gateway: &Rc<Gateway>, http: &mut HttpRequest, answer: DirectAnswer) -> bool {
    let mut request = Request::new(gateway, http, answer.received);
    request.request_id = answer.request_id;
    let generation = gateway.generation();
    let stays = admission::refuses(&generation, &request.client.listener, request.client.peer.ip());
    let app = generation.apps.first().cloned();
    if let Some(app) = &app {
        request.kind.set(app.kind());
    }
    let summary = ResponseSummary {
        written: Written::Complete { keep_alive: true },
        status: answer.status,
        body_bytes: answer.body_bytes,
    };
    gateway.server.count_response(summary.status, summary.body_bytes);
    let ended = answer.ended;
    observe::end(&request, Some(ended), app.as_deref(), &generation, &summary, ended);
    stays.is_none()
}
