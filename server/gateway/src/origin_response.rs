//! Writes responses of scripts and of other servers to the client.
//!
//! Called by [`crate::script`], [`crate::proxy`] and [`crate::page_cache`].

use crate::request::{Request, ResponseSummary};
use crate::response_head::ResponseHead;
use outboard_buffer::{Account, Held};
use outboard_development::tag;
use outboard_http_server::{Framing, HeadFacts, ResponseWriter, Written};
use outboard_http1::Version;
use outboard_log::Reason;
use std::rc::Rc;

/// Writes an interim response, which HTTP/1.0 does not have (RFC 9110 15.2).
///
/// # Errors
/// The client is gone.
pub(crate) async fn write_interim(
    response: &mut ResponseWriter,
    head: &ResponseHead,
) -> Result<(), Reason> {
    if response.request.version == Version::Http10 {
        return Ok(());
    }
    match response.write_interim(head.status, &head.headers.bytes).await {
        true => Ok(()),
        false => Err(Reason::ClientGone),
    }
}

/// Writes a response whose body is complete: its length is known, whatever the origin announced.
pub(crate) async fn write_complete(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    head: &ResponseHead,
    body: &[u8],
) -> ResponseSummary {
    let body = &*tag::append(request.gateway.development().as_deref(), &head.headers, body);
    let facts = put_head_of_whole(response, head, body.len());
    let body = if matches!(facts.framing, Framing::Bodyless(_)) { b"" } else { body };
    let is_sent = response.flush(body).await;
    summary(facts, is_sent, body.len())
}

/// The same for a large body: it is spooled for a slow client, and its memory is released.
pub(crate) async fn write_large(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    head: &ResponseHead,
    (body, held): (Vec<u8>, Option<Held>),
    account: &Rc<Account>,
) -> ResponseSummary {
    let tag = tag::of(request.gateway.development().as_deref(), &head.headers);
    let body_bytes = body.len() + tag.len();
    let facts = put_head_of_whole(response, head, body_bytes);
    if matches!(facts.framing, Framing::Bodyless(_)) {
        let is_sent = response.flush(b"").await;
        return summary(facts, is_sent, 0);
    }
    let is_put = response.write_or_spool([&body, tag, b""], account).await;
    drop((body, held));
    let is_sent = is_put && response.drain_spool().await;
    summary(facts, is_sent, body_bytes)
}

fn put_head_of_whole<'h>(
    response: &mut ResponseWriter,
    head: &'h ResponseHead,
    body_bytes: usize,
) -> HeadFacts<'h> {
    let framing = match response.request.framing(head.status, Some(body_bytes as u64)) {
        // The script did not send the body, so only its own announcement counts.
        Framing::Bodyless(_) => response.request.framing(head.status, head.content_length),
        framing => framing,
    };
    let facts = head.facts(response.request, framing);
    response.put_head(facts, &head.headers.bytes);
    facts
}

fn summary(facts: HeadFacts<'_>, is_sent: bool, body_bytes: usize) -> ResponseSummary {
    let status = facts.status;
    if !is_sent {
        return ResponseSummary::broken(status, 0);
    }
    let sent = Written::Complete { keep_alive: facts.keep_alive };
    ResponseSummary { written: sent, status, body_bytes: body_bytes as u64 }
}
