//! [`RequestContext`]: a request in addition to its head, and how a handler responds to it.
//!
//! Created by [`crate::dispatch`] and passed to the handlers. Invariant: a refusal is counted and
//! logged exactly once, where it is written.

use crate::app::App;
use crate::gateway::Gateway;
use crate::latencies::Kind;
use outboard_balancer::Server;
use outboard_development::{failure, tag};
use outboard_http_server::error_page;
use outboard_http_server::{Connection, Forwarded, HeaderBlock, RequestFacts, Written};
use outboard_http1::Method;
use outboard_log::{Reason, Wall};
use outboard_trace::Scope;
use std::cell::{Cell, OnceCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
pub(crate) struct RequestContext {
    pub(crate) gateway: Rc<Gateway>,
    pub(crate) request: RequestFacts,
    pub(crate) forwarded: Forwarded,
    pub(crate) request_id: u64,
    pub(crate) started: Wall,
    /// What has responded.
    pub(crate) kind: Cell<Kind>,
    /// Its span, if it is traced.
    pub(crate) trace: Option<Scope>,
    /// The server of an upstream that has responded, or was tried last.
    pub(crate) server: OnceCell<Arc<Server>>,
}

/// A response that was written, for the access log and the counters.
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

impl RequestContext {
    /// The client's IP address; `None` on a Unix socket.
    pub(crate) fn client_ip(&self, connection: &Connection) -> Option<IpAddr> {
        match &self.forwarded.client {
            Some(client) => client.parse().ok(),
            None => connection.peer.ip(),
        }
    }

    /// The client's address in text.
    pub(crate) fn client<'a>(&'a self, connection: &'a Connection) -> &'a str {
        self.forwarded.client.as_deref().unwrap_or(&connection.peer.text)
    }

    /// Whether the method is GET or HEAD.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.request.method, Method::Get | Method::Head)
    }

    /// `SERVER_PROTOCOL`.
    pub(crate) fn protocol(&self) -> &'static str {
        self.request.version.name()
    }

    /// Client, method and target for the error log. The address precedes the parts that the client
    /// controls.
    pub(crate) fn describe(&self, connection: &mut Connection) -> String {
        let label = label(connection);
        format!("client={} {label}", self.client(connection))
    }
}

/// Method and target.
pub(crate) fn label(connection: &mut Connection) -> Box<str> {
    let buffers = connection.buffers();
    let method = String::from_utf8_lossy(buffers.head.method(&buffers.input));
    let target = String::from_utf8_lossy(buffers.head.target(&buffers.input));
    format!("{method} {target}").into()
}

/// Responds with the page of a reason, and counts and logs it.
pub(crate) async fn refuse(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: Option<&Rc<App>>,
    reason: Reason,
) -> ResponseSummary {
    refuse_with_hint(connection, ctx, app, reason, None).await
}

/// The same, with a hint for the developer, which the page shows in development.
pub(crate) async fn refuse_with_hint(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: Option<&Rc<App>>,
    reason: Reason,
    hint: Option<&str>,
) -> ResponseSummary {
    refuse_page(connection, ctx, app, (reason, hint), HeaderBlock::default()).await
}

/// The same, with header fields.
pub(crate) async fn refuse_with_fields(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: Option<&Rc<App>>,
    reason: Reason,
    fields: HeaderBlock,
) -> ResponseSummary {
    refuse_page(connection, ctx, app, (reason, None), fields).await
}

async fn refuse_page(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: Option<&Rc<App>>,
    (reason, hint): (Reason, Option<&str>),
    fields: HeaderBlock,
) -> ResponseSummary {
    let text = ctx.describe(connection);
    ctx.gateway.log_refusal(app.map(|app| &**app), ctx.request_id, reason, &text);
    connection.context.count_refusal(reason);
    if matches!(reason, Reason::ClientGone | Reason::WriteTimeout | Reason::BodyCut) {
        return ResponseSummary::broken(reason.status(), 0);
    }
    let names_reason = ctx.gateway.generation().config.names_reasons;
    let mut page = error_page::of_reason(reason, names_reason);
    if let Some(hint) = hint.filter(|_| ctx.gateway.development().is_some()) {
        page += &format!("<p>{}</p>\n", failure::escape(hint));
    }
    let mut headers = error_page::headers(reason, names_reason);
    headers.bytes.extend_from_slice(&fields.bytes);
    respond(connection, ctx, app, reason.status(), headers, &page).await
}

/// Responds with the error of PHP, in development.
pub(crate) async fn respond_with_failure(
    connection: &mut Connection,
    ctx: &RequestContext,
    status: u16,
    text: &str,
) -> ResponseSummary {
    let label = label(connection);
    let buffers = connection.buffers();
    let accept = buffers.head.header(&buffers.input, b"accept").unwrap_or_default();
    let is_browser = memchr::memmem::find(accept, b"text/html").is_some();
    let (kind, page) = match is_browser {
        true => ("text/html; charset=utf-8", failure::html(text, &label)),
        false => ("text/plain; charset=utf-8", failure::plain(text)),
    };
    let headers = HeaderBlock::constant(&[("Content-Type", kind), ("Cache-Control", "no-store")]);
    respond(connection, ctx, None, status, headers, &page).await
}

/// Responds with a small page, or with the app's own page for the status.
pub(crate) async fn respond(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: Option<&Rc<App>>,
    status: u16,
    mut headers: HeaderBlock,
    page: &str,
) -> ResponseSummary {
    let own_page = app.and_then(|app| app.error_pages.get(&status).cloned());
    let body = own_page.as_deref().unwrap_or(page.as_bytes());
    if !headers.contains(b"Content-Type") {
        headers.add(b"Content-Type", b"text/html; charset=utf-8").expect("a constant header");
    }
    match app {
        Some(app) => {
            let path = connection.buffers().path.clone();
            headers.apply(&app.config.headers, app.below_prefix(&path), status);
        }
        None => ctx.gateway.generation().apply_rules(&mut headers, status),
    }
    let development = ctx.gateway.development();
    let body = tag::append(development.as_deref(), &headers, body);
    send(connection, ctx, status, &headers, &body).await
}

/// Writes a response with a complete body.
pub(crate) async fn send(
    connection: &mut Connection,
    ctx: &RequestContext,
    status: u16,
    headers: &HeaderBlock,
    body: &[u8],
) -> ResponseSummary {
    let written = connection.respond(ctx.request, status, headers, body).await;
    ResponseSummary { written, status, body_bytes: body.len() as u64 }
}

#[cfg(test)]
mod tests;
