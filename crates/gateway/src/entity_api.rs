//! The entity store over HTTP.
//!
//! Called by [`crate::dispatch`] for the store's path or its own listener, and by the admin socket.
//! Invariants: only configured clients have access; the response to a write is sent after the write
//! is as durable as its namespace promises.

pub(crate) mod admin;
mod call;
mod record;
mod records;

use crate::generation::Generation;
use crate::request::{RequestContext, ResponseSummary, send};
use call::Resource;
use outboard_entity_store::StoreError;
use outboard_http_server::error_page;
use outboard_http_server::{Connection, HeaderBlock, Role};
use outboard_http1::{Method, split_host_port};
use outboard_log::{Level, Reason};
use outboard_operations::{Entities, reason};
use records::Records;
use std::net::IpAddr;

pub(crate) use call::Call;
#[cfg(fuzzing)]
pub(crate) use record::Tags;

/// The path on the store's own listener and on the admin socket.
const OWN_PREFIX: &str = "/v0";

/// Responds if the request is for the store.
pub(crate) async fn try_handle(
    connection: &mut Connection,
    ctx: &RequestContext,
    generation: &Generation,
) -> Option<ResponseSummary> {
    let role = connection.listener.role;
    let entities = match (&generation.entities, role) {
        (Some(entities), _) => entities.clone(),
        // The listener is about to close.
        (None, Role::Entities) => {
            return Some(refuse(connection, ctx, Reason::Draining).await);
        }
        (None, _) => return None,
    };
    let buffers = connection.buffers();
    let below = match below(&entities, role, &buffers.path) {
        Some(below) => below.to_vec(),
        None if role == Role::Entities => Vec::new(),
        None => return None,
    };
    if let Err(reason) = admit(&entities, connection, ctx) {
        return Some(refuse(connection, ctx, reason).await);
    }
    Some(respond(connection, ctx, &entities, &below).await)
}

/// Responds to a client that has access.
async fn respond(
    connection: &mut Connection,
    ctx: &RequestContext,
    entities: &Entities,
    below: &[u8],
) -> ResponseSummary {
    let call = {
        let buffers = connection.buffers();
        let query = buffers.head.query(&buffers.input).unwrap_or_default();
        Call::read(below, query)
    };
    let Ok(call) = call else {
        return refuse(connection, ctx, Reason::EntityRequest).await;
    };
    let Some(records) = Records::of(&ctx.gateway, entities, call.namespace()) else {
        return refuse(connection, ctx, Reason::EntityRequest).await;
    };
    match call.resource {
        Resource::Status if !matches!(ctx.request.method, Method::Get | Method::Head) => {
            refuse(connection, ctx, Reason::EntityMethod).await
        }
        Resource::Status => send(connection, ctx, 200, &HeaderBlock::default(), b"ok\n").await,
        Resource::Entity(_) if !entities.pressure.admits() => overloaded(connection, ctx).await,
        Resource::Entity(request) => {
            record::respond(connection, ctx, entities, &records, request).await
        }
        Resource::Range { start, end } => record::range(connection, ctx, records, start, end).await,
    }
}

/// Responds with the reason in plain text, for programs; counts and logs it.
async fn refuse(
    connection: &mut Connection,
    ctx: &RequestContext,
    reason: Reason,
) -> ResponseSummary {
    let text = ctx.describe(connection);
    ctx.gateway.log_refusal(None, ctx.request_id, reason, &text);
    connection.context.count_refusal(reason);
    if matches!(reason, Reason::ClientGone | Reason::WriteTimeout | Reason::BodyCut) {
        return ResponseSummary::broken(reason.status(), 0);
    }
    let mut headers = error_page::headers(reason, true);
    headers.remove(b"Content-Type");
    headers.add(b"Content-Type", b"text/plain; charset=utf-8").expect("a constant header");
    let line = format!("{}: {}\n", reason.code(), reason.text());
    send(connection, ctx, reason.status(), &headers, line.as_bytes()).await
}

/// Responds with an error of the store.
async fn fail(
    connection: &mut Connection,
    ctx: &RequestContext,
    error: &StoreError,
) -> ResponseSummary {
    let reason = reason(error);
    match reason {
        // Counted only: a log line for each would add to the overload.
        Reason::EntityOverload => return overloaded(connection, ctx).await,
        Reason::EntityUnreachable | Reason::EntityFailed => {
            connection.context.log(Level::Error, &format!("entities: {error}"));
        }
        _ => {}
    }
    refuse(connection, ctx, reason).await
}

async fn overloaded(connection: &mut Connection, ctx: &RequestContext) -> ResponseSummary {
    let reason = Reason::EntityOverload;
    connection.context.count_refusal(reason);
    let lines = [("Retry-After", "1"), ("X-Outboard-Reason", reason.code())];
    let headers = HeaderBlock::constant(&lines);
    send(connection, ctx, reason.status(), &headers, b"").await
}

/// The path below the store's prefix, if it has that.
fn below<'p>(entities: &Entities, role: Role, path: &'p [u8]) -> Option<&'p [u8]> {
    let prefix = match role {
        Role::Apps => entities.config.path.as_deref()?,
        _ => OWN_PREFIX,
    };
    path.strip_prefix(prefix.as_bytes()).filter(|below| below.starts_with(b"/"))
}

/// Whether the client may use the store.
fn admit(
    entities: &Entities,
    connection: &mut Connection,
    ctx: &RequestContext,
) -> Result<(), Reason> {
    if entities.config.trusted_clients.trusts(ctx.client_ip(connection)) {
        return if is_rebound(connection) { Err(Reason::EntityForbidden) } else { Ok(()) };
    }
    let Some(token) = &entities.config.token else { return Err(Reason::EntityForbidden) };
    let buffers = connection.buffers();
    let given = buffers.head.header(&buffers.input, b"authorization").unwrap_or_default();
    let given = given.strip_prefix(b"Bearer ").unwrap_or_default().trim_ascii();
    if is_same(given, token.as_bytes()) { Ok(()) } else { Err(Reason::EntityToken) }
}

/// Whether the request could come from a foreign page in a browser on this machine, whose host name
/// now resolves to this address (DNS rebinding). Legitimate clients use the address, `localhost`,
/// or a name without dots.
fn is_rebound(connection: &mut Connection) -> bool {
    // On listeners of apps, host names with dots are legitimate.
    let is_own = connection.listener.role == Role::Entities;
    let is_local = is_own && connection.peer.ip().is_some_and(|ip| ip.is_loopback());
    let buffers = connection.buffers();
    let host = split_host_port(buffers.head.host(&buffers.input).unwrap_or_default()).0;
    let bare = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
    let is_address = std::str::from_utf8(bare).is_ok_and(|host| host.parse::<IpAddr>().is_ok());
    let below_localhost = host.to_ascii_lowercase().ends_with(b".localhost");
    is_local && !is_address && !below_localhost && host.contains(&b'.')
}

/// Compares in constant time.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differ = given.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests;
