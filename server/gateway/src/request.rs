//! [`Request`]: a request as the handlers have it, and the responses that several of them send.
//!
//! Created by [`crate::dispatch`]. Invariants: it changes only while access rules are checked; a handler writes one
//! response, or returns why it has written nothing.

use crate::app::App;
use crate::gateway::Gateway;
use crate::latencies::Kind;
use outboard_balancer::Server;
use outboard_config::ConditionSet;
use outboard_development::{failure, tag};
use outboard_http_server::{
    Forwarded, Framing, HeaderBlock, Request as HttpRequest, ResponseWriter, Written,
};
use outboard_http1::{Method, split_host_port};
use outboard_log::Wall;
use outboard_trace::Scope;
use std::cell::{Cell, OnceCell};
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
pub(crate) struct Request<'c> {
    http: &'c mut HttpRequest,
    pub(crate) gateway: Rc<Gateway>,
    pub(crate) forwarded: Forwarded,
    pub(crate) request_id: u64,
    pub(crate) started: Wall,
    /// The conditions of its app that hold.
    pub(crate) conditions: Cell<ConditionSet>,
    /// Whether a rule with a condition has led to its route.
    pub(crate) is_conditional: Cell<bool>,
    /// What has responded.
    pub(crate) kind: Cell<Kind>,
    /// Whether a worker with Xdebug handles it.
    pub(crate) is_debugged: Cell<bool>,
    /// Its span, if it is traced.
    pub(crate) trace: Option<Scope>,
    /// The server of an upstream that has responded, or was tried last.
    pub(crate) server: OnceCell<Arc<Server>>,
}

/// A response that was written, for the access log and the counters.
#[derive(Debug)]
pub(crate) struct ResponseSummary {
    pub(crate) written: Written,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
}

impl ResponseSummary {
    /// A response that could not be completed.
    pub(crate) fn broken(status: u16, body_bytes: u64) -> Self {
        Self { written: Written::Broken, status, body_bytes }
    }
}

impl Deref for Request<'_> {
    type Target = HttpRequest;

    fn deref(&self) -> &HttpRequest {
        self.http
    }
}

impl DerefMut for Request<'_> {
    fn deref_mut(&mut self) -> &mut HttpRequest {
        self.http
    }
}

impl<'c> Request<'c> {
    /// A request that has just arrived.
    pub(crate) fn new(gateway: &Rc<Gateway>, http: &'c mut HttpRequest, started: Wall) -> Self {
        Self {
            forwarded: forwarded(http),
            http,
            gateway: gateway.clone(),
            request_id: gateway.next_request_id(),
            started,
            conditions: Cell::default(),
            is_conditional: Cell::default(),
            kind: Cell::default(),
            is_debugged: Cell::new(false),
            trace: None,
            server: OnceCell::new(),
        }
    }

    /// The client's IP address; `None` on a Unix socket.
    pub(crate) fn client_ip(&self) -> Option<IpAddr> {
        match &self.forwarded.client {
            Some(client) => client.parse().ok(),
            None => self.client.peer.ip(),
        }
    }

    /// The client's address in text.
    pub(crate) fn client_address(&self) -> &str {
        self.forwarded.client.as_deref().unwrap_or(&self.client.peer.text)
    }

    /// The host that it is for, with its port: as a trusted proxy or the client has named it.
    pub(crate) fn authority(&self) -> Option<&[u8]> {
        self.forwarded.host.as_deref().or(self.named_host())
    }

    /// The same without a port; empty if there is none.
    pub(crate) fn host(&self) -> &[u8] {
        split_host_port(self.authority().unwrap_or_default()).0
    }

    /// Whether the method is GET or HEAD.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.method(), Method::Get | Method::Head)
    }

    /// `SERVER_PROTOCOL`.
    pub(crate) fn protocol(&self) -> &'static str {
        self.version().name()
    }

    /// Applies the app's header rules to the response.
    pub(crate) fn apply_rules(&self, app: &App, headers: &mut HeaderBlock, status: u16) {
        let path = app.below_prefix(self.path());
        headers.apply(&app.config.headers, path, status, self.conditions.get());
    }

    /// Method and target.
    pub(crate) fn label(&self) -> String {
        let method = String::from_utf8_lossy(self.method_name());
        format!("{method} {}", String::from_utf8_lossy(self.target()))
    }

    /// Client, method and target for the error log. The address precedes the parts that the client
    /// controls.
    pub(crate) fn describe(&self) -> String {
        format!("client={} {}", self.client_address(), self.label())
    }
}

fn forwarded(request: &HttpRequest) -> Forwarded {
    let (forwarding, https) =
        (&request.client.listener.forwarding, request.client.transport.is_encrypted());
    if !forwarding.has_proxies() {
        return Forwarded { https, ..Forwarded::default() };
    }
    let (head, input) = request.head();
    let reported = Forwarded::read(forwarding, &request.client.peer, head, input);
    Forwarded { https: reported.https || https, ..reported }
}

/// Responds with the error of PHP, in development.
pub(crate) async fn respond_with_failure(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    status: u16,
    text: &str,
) -> ResponseSummary {
    let accept = request.header(b"accept").unwrap_or_default();
    let is_browser = memchr::memmem::find(accept, b"text/html").is_some();
    let (kind, page) = match is_browser {
        true => ("text/html; charset=utf-8", failure::html(text, &request.label())),
        false => ("text/plain; charset=utf-8", failure::plain(text)),
    };
    let headers = HeaderBlock::constant(&[("Content-Type", kind), ("Cache-Control", "no-store")]);
    respond(request, response, None, status, headers, &page).await
}

/// Responds with a small page, or with the app's own page for the status.
pub(crate) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: Option<&App>,
    status: u16,
    headers: HeaderBlock,
    page: &str,
) -> ResponseSummary {
    let own_page = app.and_then(|app| app.error_pages.get(&status));
    let body = own_page.map_or(page.as_bytes(), |own| own);
    respond_with(request, response, app, status, headers, body).await
}

/// Responds with a page, to which the header rules of the app apply.
pub(crate) async fn respond_with(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: Option<&App>,
    status: u16,
    mut headers: HeaderBlock,
    body: &[u8],
) -> ResponseSummary {
    if !headers.contains(b"Content-Type") {
        headers.add(b"Content-Type", b"text/html; charset=utf-8").expect("a constant header");
    }
    match app {
        Some(app) => {
            request.apply_rules(app, &mut headers, status);
        }
        None => request.gateway.generation().apply_rules(&mut headers, status),
    }
    let development = request.gateway.development();
    let body = tag::append(development.as_deref(), &headers, body);
    send(response, status, &headers, &body).await
}

/// Writes a response with a complete body.
pub(crate) async fn send(
    response: &mut ResponseWriter,
    status: u16,
    headers: &HeaderBlock,
    body: &[u8],
) -> ResponseSummary {
    let written = response.respond(status, headers, body).await;
    let is_sent = !matches!(response.request.framing(status, None), Framing::Bodyless(_));
    ResponseSummary { written, status, body_bytes: if is_sent { body.len() as u64 } else { 0 } }
}

#[cfg(test)]
mod tests;
