//! [`Page`]: the answer that parts are put into.
//!
//! Owned by one composed answer. Invariants: the head goes out with the first bytes of the body;
//! a page that is complete before any of it was sent goes out with its length in one write; what
//! is broken off cannot be taken for a whole page; what is in memory of it is counted.

use crate::app::App;
use crate::php_head::PhpHead;
use crate::request::{RequestContext, ResponseSummary};
use crate::script::relay::put_piece;
use outboard_buffer::Held;
use outboard_config::HeaderRule;
use outboard_http_server::Connection;
use outboard_http_server::{Framing, Written};
use outboard_http1::{LAST_CHUNK, write_chunk_head};

/// The end of the last piece of a chunked body, and of the body.
const CHUNK_END_AND_LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// A page on its way to the client.
#[derive(Debug)]
pub(super) struct Page {
    head: PhpHead,
    /// How the body is framed, once the head has gone out.
    framing: Option<Framing>,
    /// What comes next.
    pub(super) pending: Vec<u8>,
    /// Counts it.
    held: Held,
    sent_bytes: u64,
}

impl Page {
    pub(super) fn new(app: &App) -> Self {
        Self {
            head: PhpHead::default(),
            framing: None,
            pending: Vec::new(),
            held: app.memory.responses.hold(0),
            sent_bytes: 0,
        }
    }

    /// Counts what is pending now.
    pub(super) fn count(&mut self) {
        self.held.set(self.pending.len());
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

    /// Sends what is pending, as far as the client takes it; the rest is spooled. False when the client is gone.
    pub(super) async fn flush(
        &mut self,
        connection: &mut Connection,
        ctx: &RequestContext,
    ) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        let length = None;
        let framing = self.put_head(connection, ctx, length);
        self.count();
        let (account, sent_bytes) = (self.held.account().clone(), &mut self.sent_bytes);
        let put = put_piece(connection, framing, &self.pending, sent_bytes, &account).await;
        self.pending.clear();
        self.pending.shrink_to(super::FLUSH_BYTES);
        self.count();
        put
    }

    /// Sends the rest and ends the answer.
    pub(super) async fn finish(
        mut self,
        connection: &mut Connection,
        ctx: &RequestContext,
    ) -> ResponseSummary {
        let body = std::mem::take(&mut self.pending);
        let length = match self.framing {
            None => Some(body.len() as u64),
            Some(_) => None,
        };
        let framing = self.put_head(connection, ctx, length);
        let body = if matches!(framing, Framing::Bodyless(_)) { Vec::new() } else { body };
        self.sent_bytes += body.len() as u64;
        let end = match framing {
            Framing::Chunked if body.is_empty() => LAST_CHUNK,
            Framing::Chunked => {
                write_chunk_head(&mut connection.buffers().output, body.len());
                CHUNK_END_AND_LAST_CHUNK
            }
            _ => b"",
        };
        let is_put = connection.write_or_spool([&body, end, b""], self.held.account()).await;
        drop(body);
        self.count();
        if !(is_put && connection.drain_spool().await) {
            return self.break_off();
        }
        let keep_alive = ctx.request.keep_alive && framing != Framing::UntilClose;
        let sent = Written::Complete { keep_alive };
        ResponseSummary { written: sent, status: self.head.status, body_bytes: self.sent_bytes }
    }

    /// Leaves the client without an end, so that it notices.
    pub(super) fn break_off(self) -> ResponseSummary {
        ResponseSummary::broken(self.head.status, self.sent_bytes)
    }

    /// Puts the head into the output, unless it has gone out.
    fn put_head(
        &mut self,
        connection: &mut Connection,
        ctx: &RequestContext,
        length: Option<u64>,
    ) -> Framing {
        if let Some(framing) = self.framing {
            return framing;
        }
        let head = &self.head;
        let framing = match ctx.request.framing(head.status, length) {
            // Nothing of the body was made.
            Framing::Bodyless(_) => Framing::Bodyless(head.content_length),
            framing => framing,
        };
        let facts = head.facts(ctx.request, framing);
        connection.put_head(facts, &head.headers.bytes);
        self.framing = Some(framing);
        framing
    }
}
