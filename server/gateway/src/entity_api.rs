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
use crate::refusal::{Outcome, Refusal};
use crate::request::{Request, ResponseSummary, send};
use call::Resource;
use outboard_entity_store::StoreError;
use outboard_http_server::{HeaderBlock, ResponseWriter, Role};
use outboard_http1::split_host_port;
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
///
/// # Errors
/// The client has no access, or the request is not one of the store's.
pub(crate) async fn try_handle(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
) -> Result<Option<ResponseSummary>, Refusal> {
    let role = request.client.listener.role;
    let entities = match (&generation.entities, role) {
        (Some(entities), _) => entities,
        // The listener is about to close.
        (None, Role::Entities) => return Err(Refusal::text(Reason::Draining)),
        (None, _) => return Ok(None),
    };
    let below = match below(entities, role, request.path()) {
        Some(below) => below,
        None if role == Role::Entities => b"",
        None => return Ok(None),
    };
    admit(entities, request).map_err(Refusal::text)?;
    respond(request, response, entities, below).await.map(Some)
}

/// Responds to a client that has access.
async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    entities: &Entities,
    below: &[u8],
) -> Outcome {
    let invalid = || Refusal::text(Reason::EntityRequest);
    let call = Call::read(below, request.query().unwrap_or_default()).map_err(|_| invalid())?;
    let records = Records::of(&request.gateway, entities, call.namespace()).ok_or_else(invalid)?;
    match call.resource {
        Resource::Status if !request.is_read() => Err(Refusal::text(Reason::EntityMethod)),
        Resource::Status => Ok(send(response, 200, &HeaderBlock::default(), b"ok\n").await),
        Resource::Entity(_) if !entities.pressure.admits() => {
            Err(Refusal::overload(Reason::EntityOverload))
        }
        Resource::Entity(of_record) => {
            record::respond(request, response, entities, &records, of_record).await
        }
        Resource::Range { start, end } => {
            record::range(request, response, records, start, end).await
        }
    }
}

/// Refuses a request because of an error of the store.
fn failed(request: &Request<'_>, error: &StoreError) -> Refusal {
    match reason(error) {
        reason @ Reason::EntityOverload => Refusal::overload(reason),
        reason => {
            if matches!(reason, Reason::EntityUnreachable | Reason::EntityFailed) {
                request.gateway.server.log(Level::Error, &format!("entities: {error}"));
            }
            Refusal::text(reason)
        }
    }
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
fn admit(entities: &Entities, request: &Request<'_>) -> Result<(), Reason> {
    if entities.config.trusted_clients.trusts(request.client_ip()) {
        return if is_rebound(request) { Err(Reason::EntityForbidden) } else { Ok(()) };
    }
    let Some(token) = &entities.config.token else { return Err(Reason::EntityForbidden) };
    let given = request.header(b"authorization").unwrap_or_default();
    let given = given.strip_prefix(b"Bearer ").unwrap_or_default().trim_ascii();
    if is_same(given, token.as_bytes()) { Ok(()) } else { Err(Reason::EntityToken) }
}

/// Whether the request could come from a foreign page in a browser on this machine, whose host name
/// now resolves to this address (DNS rebinding). Legitimate clients use the address, `localhost`,
/// or a name without dots.
fn is_rebound(request: &Request<'_>) -> bool {
    // On listeners of apps, host names with dots are legitimate.
    let is_own = request.client.listener.role == Role::Entities;
    let is_local = is_own && request.client.peer.ip().is_some_and(|ip| ip.is_loopback());
    let host = split_host_port(request.named_host().unwrap_or_default()).0;
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
