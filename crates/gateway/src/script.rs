//! Answering with a PHP script: hand the request to the pool, relay what the worker says.
//!
//! Called by the turn. Invariants: the body is whole before a worker is taken; an answer that is
//! complete when it is first looked at goes out with its length in one write; once a head is out,
//! a failure breaks the connection instead of pretending a whole answer.

mod frame;
mod relay;
mod sendfile;

use crate::app::App;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::reason::Reason;
use crate::receive::{self, Received};
use crate::route::Script;
use crate::turn::{Answered, Turn, refuse};
use outboard_reactor::now_ms;
use std::rc::Rc;

/// Runs the script and relays its answer.
pub(crate) async fn answer(
    connection: &mut Connection,
    turn: &Turn,
    app: &Rc<App>,
    script: Script,
) -> Answered {
    let received = if script.internal {
        Received::none()
    } else {
        match receive::body(connection, &app.config.limits).await {
            Ok(received) => received,
            Err(reason) => return refuse(connection, turn, Some(app), reason).await,
        }
    };
    let frame = frame::request(connection, turn, app, &script, received.content_length);
    let exchange = Rc::new(Exchange::new(
        frame,
        received.body,
        turn.request_id,
        now_ms(),
        usize::try_from(app.config.limits.response_buffer_bytes).unwrap_or(usize::MAX),
    ));
    let local_peer = connection.ends.local_peer(&connection.stream);
    if let Err(reason) = app.pool.submit(exchange.clone(), local_peer) {
        return refuse(connection, turn, Some(app), reason).await;
    }
    let lease = Lease { app, exchange };
    match relay::answer(connection, turn, app, &script, &lease.exchange).await {
        Ok(answered) => answered,
        Err(reason) => refuse(connection, turn, Some(app), reason).await,
    }
}

/// Sees to it that a request nobody waits for any more is taken back, however the wait ended.
struct Lease<'a> {
    app: &'a App,
    exchange: Rc<Exchange>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.exchange.has_ended() {
            self.app.pool.abandon(&self.exchange);
        }
    }
}

/// A failure before anything was written: the client gets its status.
type BeforeHead<T> = Result<T, Reason>;
