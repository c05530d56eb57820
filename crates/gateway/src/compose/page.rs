//! [`Page`]: the answer that parts are put into.
//!
//! Owned by one composed answer. Invariants: the head goes out with the first bytes of the body;
//! a page that is complete before any of it was sent goes out with its length in one write; what
//! is broken off cannot be taken for a whole page.

use crate::answer::{Framing, Sent};
use crate::connection::Connection;
use crate::php_head::PhpHead;
use crate::turn::{Answered, Turn};
use outboard_config::HeaderRule;
use outboard_http1::{LAST_CHUNK, write_chunk};

/// A page on its way to the client.
#[derive(Debug, Default)]
pub(super) struct Page {
    head: PhpHead,
    /// How the body is framed, once the head has gone out.
    framing: Option<Framing>,
    /// What comes next.
    pub(super) pending: Vec<u8>,
    sent_bytes: u64,
}

impl Page {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets status and headers.
    pub(super) fn lead(&mut self, head: PhpHead) {
        self.head = head;
    }

    /// Changes the headers as the app's rules say.
    pub(super) fn apply(&mut self, rules: &[HeaderRule], path: &[u8]) {
        if !rules.is_empty() {
            self.head.headers.apply(rules, path);
        }
    }

    /// Whether the client has seen any of it.
    pub(super) fn has_begun(&self) -> bool {
        self.framing.is_some()
    }

    /// Sends what is pending. False when the client is gone.
    pub(super) async fn flush(&mut self, connection: &mut Connection, turn: &Turn) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        let length = None;
        let framing = self.put_head(connection, turn, length);
        let body = std::mem::take(&mut self.pending);
        self.sent_bytes += body.len() as u64;
        let written = match framing {
            Framing::Chunked => connection.flush_chunk(&body).await,
            Framing::Bodyless(_) => connection.flush(b"").await,
            Framing::Length(_) | Framing::UntilClose => connection.flush(&body).await,
        };
        connection.buffers().output.clear();
        self.pending = body;
        self.pending.clear();
        written
    }

    /// Sends the rest and ends the answer.
    pub(super) async fn finish(mut self, connection: &mut Connection, turn: &Turn) -> Answered {
        let body = std::mem::take(&mut self.pending);
        let length = match self.framing {
            None => Some(body.len() as u64),
            Some(_) => None,
        };
        let framing = self.put_head(connection, turn, length);
        let body = if matches!(framing, Framing::Bodyless(_)) { Vec::new() } else { body };
        self.sent_bytes += body.len() as u64;
        let written = if framing == Framing::Chunked {
            let output = &mut connection.buffers().output;
            write_chunk(output, &body);
            output.extend_from_slice(LAST_CHUNK);
            connection.flush(b"").await
        } else {
            connection.flush(&body).await
        };
        if !written {
            return self.break_off();
        }
        let keep_alive = turn.asked.keep_alive && framing != Framing::UntilClose;
        let sent = Sent::Whole { keep_alive };
        Answered { sent, status: self.head.status, body_bytes: self.sent_bytes }
    }

    /// Leaves the client without an end, so that it notices.
    pub(super) fn break_off(self) -> Answered {
        Answered::broken(self.head.status, self.sent_bytes)
    }

    /// Puts the head into the output, unless it has gone out.
    fn put_head(
        &mut self,
        connection: &mut Connection,
        turn: &Turn,
        length: Option<u64>,
    ) -> Framing {
        if let Some(framing) = self.framing {
            return framing;
        }
        let head = &self.head;
        let framing = match turn.asked.framing(head.status, length) {
            // Nothing of the body was made.
            Framing::Bodyless(_) => Framing::Bodyless(head.content_length),
            framing => framing,
        };
        let facts = head.facts(turn.asked, framing);
        connection.put_head(facts, &head.headers.bytes);
        self.framing = Some(framing);
        framing
    }
}
