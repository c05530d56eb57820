//! [`Upload`]: a request whose body is still coming while its head is on the way.
//!
//! Begun by the client for whoever hands bodies through. Invariants: it is sent once, since what was
//! sent of the body is gone; a peer that answers early and takes no more is heard all the same.

use crate::client::Client;
use crate::connection::{Broken, Connection};
use crate::error::Error;
use crate::host::Permit;
use crate::request::Request;
use crate::response::{Deadline, Response};
use outboard_http1::{LAST_CHUNK, write_chunk};
use outboard_reactor::{Elapsed, now_ms, with_deadline};
use std::rc::Rc;

/// How the end of the body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// So many bytes will be written.
    Known(u64),
    /// Chunks.
    Chunked,
}

/// See the module.
#[derive(Debug)]
pub struct Upload {
    client: Rc<Client>,
    request: Request,
    connection: Box<Connection>,
    permit: Permit,
    length: BodyLength,
    /// The peer takes no more.
    is_refused: bool,
}

impl Upload {
    pub(crate) fn new(
        client: Rc<Client>,
        request: Request,
        connection: Box<Connection>,
        permit: Permit,
        length: BodyLength,
    ) -> Self {
        Self { client, request, connection, permit, length, is_refused: false }
    }

    /// Sends the head.
    ///
    /// # Errors
    /// It cannot be written down.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        let mut head = Vec::with_capacity(512);
        self.request.write_head(&mut head, Some(self.length))?;
        self.send(&head).await;
        Ok(())
    }

    /// Sends more of the body. What a peer does not take is passed over: its answer tells why.
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

    /// Ends the body and waits for the head of the answer.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn finish(mut self) -> Result<Response, Error> {
        if self.length == BodyLength::Chunked {
            self.send(LAST_CHUNK).await;
        }
        let Self { client, request, mut connection, permit, is_refused, .. } = self;
        let timeout_ms = request.timeout_ms;
        let deadline = Deadline { at_ms: now_ms() + timeout_ms, timeout_ms };
        let head = match with_deadline(deadline.at_ms, connection.read_head(&request)).await {
            Ok(Ok(head)) => Ok(if is_refused { head.at_the_end() } else { head }),
            Ok(Err(Broken::Unanswered(error) | Broken::Failed(error))) => Err(error),
            Err(Elapsed) => Err(deadline.error(&request.url)),
        };
        if let Err(error) = &head {
            client.count(|counters| counters.failed(error.kind));
        }
        let (facts, body) = Client::answered(&request, connection, head?);
        Response::new(client, &request, facts, body, permit, deadline)
    }

    async fn send(&mut self, bytes: &[u8]) {
        if !self.is_refused {
            let until_ms = now_ms() + self.request.timeout_ms;
            let written = with_deadline(until_ms, self.connection.write(bytes)).await;
            self.is_refused = !matches!(written, Ok(Ok(())));
        }
    }
}
