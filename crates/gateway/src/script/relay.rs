//! From the worker's frames to the client's bytes.

use super::{BeforeHead, sendfile};
use crate::answer::{Framing, HeadFacts, Sent};
use crate::app::App;
use crate::connection::Connection;
use crate::exchange::{Arrived, End, Exchange};
use crate::log::Level;
use crate::php_head::PhpHead;
use crate::reason::Reason;
use crate::route::Script;
use crate::turn::{Answered, Turn};
use outboard_http1::LAST_CHUNK;
use std::rc::Rc;
use std::task::Poll;

/// Waits for the answer and relays it.
pub(super) async fn answer(
    connection: &mut Connection,
    turn: &Turn,
    app: &Rc<App>,
    script: &Script,
    exchange: &Rc<Exchange>,
) -> BeforeHead<Answered> {
    let mut arrived = collect(connection, exchange).await?;
    let payload = arrived.head.take().ok_or(Reason::BadResponse)?;
    let mut head = PhpHead::read(&payload).map_err(|bad| {
        app.log_text(Level::Error, turn.request_id, &bad.why);
        Reason::BadResponse
    })?;
    if let Some(order) = head.sendfile.take() {
        return sendfile::answer(connection, turn, app, script, head, order).await;
    }
    if !app.config.headers.is_empty() {
        let path = connection.buffers().path.clone();
        head.headers.apply(&app.config.headers, app.below_prefix(&path));
    }
    match arrived.end {
        Some(End::Failed(reason)) => Err(reason),
        Some(End::Complete) => Ok(whole(connection, turn, &head, &arrived.body).await),
        None => Ok(stream(connection, turn, app, &head, arrived, exchange).await),
    }
}

/// Waits for the head and whatever comes with it.
async fn collect(connection: &Connection, exchange: &Exchange) -> BeforeHead<Arrived> {
    let arrived = next(connection, exchange).await.ok_or(Reason::ClientGone)?;
    match (&arrived.head, arrived.end) {
        (None, Some(End::Failed(reason))) => Err(reason),
        _ => Ok(arrived),
    }
}

/// The next news of the exchange; `None` when the client has gone.
async fn next(connection: &Connection, exchange: &Exchange) -> Option<Arrived> {
    std::future::poll_fn(|_| {
        if let Some(arrived) = exchange.take() {
            return Poll::Ready(Some(arrived));
        }
        connection.stream.source().poll_hangup().map(|()| None)
    })
    .await
}

fn head_facts<'a>(turn: &Turn, head: &'a PhpHead, framing: Framing) -> HeadFacts<'a> {
    HeadFacts {
        status: head.status,
        reason: &head.reason,
        framing,
        keep_alive: turn.asked.keep_alive && framing != Framing::UntilClose,
        version: turn.asked.version,
        own_date: head.has_date,
        own_server: head.has_server,
    }
}

/// A complete answer: its length is known, whatever PHP announced.
async fn whole(connection: &mut Connection, turn: &Turn, head: &PhpHead, body: &[u8]) -> Answered {
    let framing = match turn.asked.framing(head.status, Some(body.len() as u64)) {
        // The script was not asked for its body, so only its own word counts.
        Framing::Bodyless(_) => turn.asked.framing(head.status, head.content_length),
        framing => framing,
    };
    let facts = head_facts(turn, head, framing);
    connection.put_head(facts, &head.headers.bytes);
    let body = if matches!(framing, Framing::Bodyless(_)) { b"" } else { body };
    let status = head.status;
    if connection.flush(body).await {
        let sent = Sent::Whole { keep_alive: facts.keep_alive };
        Answered { sent, status, body_bytes: body.len() as u64 }
    } else {
        Answered::broken(status, 0)
    }
}

/// An answer that comes in pieces.
async fn stream(
    connection: &mut Connection,
    turn: &Turn,
    app: &App,
    head: &PhpHead,
    first: Arrived,
    exchange: &Exchange,
) -> Answered {
    let framing = turn.asked.framing(head.status, head.content_length);
    let facts = head_facts(turn, head, framing);
    connection.put_head(facts, &head.headers.bytes);
    let mut sent_bytes = 0;
    let mut arrived = first;
    loop {
        let wrote = write_piece(connection, framing, &arrived.body, &mut sent_bytes).await;
        if !wrote {
            return Answered::broken(head.status, sent_bytes);
        }
        match arrived.end {
            Some(End::Complete) => break,
            Some(End::Failed(reason)) => {
                connection.gateway.counters.borrow_mut().refused(reason);
                let label = exchange.label();
                connection.gateway.log_refusal(Some(app), turn.request_id, reason, &label);
                return Answered::broken(head.status, sent_bytes);
            }
            None => {}
        }
        arrived = match next(connection, exchange).await {
            Some(arrived) => arrived,
            None => {
                connection.lost = Some(Reason::ClientGone);
                return Answered::broken(head.status, sent_bytes);
            }
        };
    }
    finish(connection, facts, sent_bytes).await
}

async fn write_piece(
    connection: &mut Connection,
    framing: Framing,
    body: &[u8],
    sent_bytes: &mut u64,
) -> bool {
    let body = match framing {
        Framing::Bodyless(_) => &[],
        // More than was announced would be read as the next answer.
        Framing::Length(length) => {
            let left = usize::try_from(length - *sent_bytes).unwrap_or(usize::MAX);
            &body[..body.len().min(left)]
        }
        Framing::Chunked | Framing::UntilClose => body,
    };
    *sent_bytes += body.len() as u64;
    if framing == Framing::Chunked && !body.is_empty() {
        return connection.flush_chunk(body).await;
    }
    let written = connection.flush(body).await;
    connection.buffers().output.clear();
    written
}

async fn finish(connection: &mut Connection, facts: HeadFacts<'_>, sent_bytes: u64) -> Answered {
    let status = facts.status;
    let whole = match facts.framing {
        Framing::Chunked => connection.write_plain(LAST_CHUNK).await,
        Framing::Length(length) => sent_bytes == length,
        Framing::Bodyless(_) | Framing::UntilClose => true,
    };
    if !whole {
        return Answered::broken(status, sent_bytes);
    }
    let sent = Sent::Whole { keep_alive: facts.keep_alive };
    Answered { sent, status, body_bytes: sent_bytes }
}
