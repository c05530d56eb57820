//! [`Upload`]: a request whose body is streamed.
//!
//! Started by the client for callers that forward bodies. Invariants: it is sent once, because the sent
//! part of the body is gone; the response of a peer that responds early and reads no more is received.

use crate::connection::{Broken, Connection};
use crate::connections::Connections;
use crate::error::Error;
use crate::origin_pool::Permit;
use crate::request::{BodyLength, Request};
use crate::response::{Body, Deadline, Response};
use outboard_http1::{LAST_CHUNK, write_chunk};
use outboard_reactor::{Elapsed, now_ms, with_deadline};
use std::rc::Rc;

/// A request with a streamed body.
#[derive(Debug)]
pub struct Upload {
    connections: Rc<Connections>,
    request: Request,
    connection: Box<Connection>,
    permit: Permit,
    length: BodyLength,
    /// The peer reads no more.
    is_refused: bool,
}

impl Upload {
    pub(crate) fn new(
        connections: Rc<Connections>,
        request: Request,
        connection: Box<Connection>,
        permit: Permit,
        length: BodyLength,
    ) -> Self {
        Self { connections, request, connection, permit, length, is_refused: false }
    }

    /// Sends the head.
    ///
    /// # Errors
    /// The head is invalid.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        let mut head = Vec::with_capacity(512);
        self.request.write_head(&mut head, Some(self.length))?;
        self.send(&head).await;
        Ok(())
    }

    /// Sends more of the body. Bytes that the peer does not read are discarded; its response says why.
    pub async fn write(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        match self.length {
            BodyLength::Known(_) => self.send(piece).await,
            BodyLength::Chunked => {
                let mut chunk = Vec::with_capacity(piece.len() + 16);
                write_chunk(&mut chunk, piece);
                self.send(&chunk).await;
            }
        }
    }

    /// Ends the body and waits for the head of the response.
    ///
    /// # Errors
    /// Why there is no response.
    pub async fn finish(mut self) -> Result<Response, Error> {
        if self.length == BodyLength::Chunked {
            self.send(LAST_CHUNK).await;
        }
        let Self { connections, request, mut connection, permit, is_refused, .. } = self;
        let timeout_ms = request.timeout_ms;
        let deadline = Deadline { at_ms: now_ms() + timeout_ms, timeout_ms };
        let head = match with_deadline(deadline.at_ms, connection.read_head(&request)).await {
            Ok(Ok(head)) => Ok(if is_refused { head.at_the_end() } else { head }),
            Ok(Err(Broken::Unanswered(error) | Broken::Failed(error))) => Err(error),
            Err(Elapsed) => Err(deadline.error(request.server())),
        };
        let head = match head {
            Ok(head) if !request.shares_connection() => Ok(head.at_the_end()),
            head => head,
        };
        if let Err(error) = &head {
            connections.count(|counters| counters.failed(error.kind));
        }
        let (facts, body) = Body::of_http1(&request, connection, head?);
        Response::new(connections, &request, facts, body, permit, deadline)
    }

    async fn send(&mut self, bytes: &[u8]) {
        if !self.is_refused {
            let until_ms = now_ms() + self.request.timeout_ms;
            let written = with_deadline(until_ms, self.connection.write(bytes)).await;
            self.is_refused = !matches!(written, Ok(Ok(())));
        }
    }
}
