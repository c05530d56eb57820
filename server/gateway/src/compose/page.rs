//! [`Page`]: the response that parts are written to.
//!
//! Owned by one composed response. Invariants: the head is sent with the first bytes of the body; a
//! page that is complete before any of it was sent has Content-Length and is one write; a client
//! can distinguish an aborted page from a complete one; its memory is counted.

use crate::app::App;
use crate::compression::Compression;
use crate::request::{Request, ResponseSummary};
use crate::response_head::ResponseHead;
use outboard_buffer::Held;
use outboard_http_server::{BodyWriter, Framing, ResponseWriter};
use std::rc::Rc;

/// A page on its way to the client.
#[derive(Debug)]
pub(super) struct Page {
    app: Rc<App>,
    head: ResponseHead,
    body: Option<Body>,
    /// The bytes to write next.
    pub(super) pending: Vec<u8>,
    /// Counts `pending`.
    held: Held,
}

impl Page {
    pub(super) fn new(app: &Rc<App>) -> Self {
        Self {
            app: app.clone(),
            head: ResponseHead::default(),
            body: None,
            pending: Vec::new(),
            held: app.memory.responses.hold(0),
        }
    }

    /// Updates the account with the length of `pending`.
    pub(super) fn count(&mut self) {
        self.held.set(self.pending.len());
    }

    /// Sets status and headers.
    pub(super) fn set_head(&mut self, head: ResponseHead) {
        self.head = head;
    }

    /// Applies the app's header rules.
    pub(super) fn apply_rules(&mut self, request: &Request<'_>) {
        request.apply_rules(&self.app, &mut self.head.headers, self.head.status);
    }

    /// Whether a part of it was sent.
    pub(super) fn is_started(&self) -> bool {
        self.body.is_some()
    }

    /// Writes the pending bytes, spooled for a slow client. False if the client is gone.
    pub(super) async fn flush(
        &mut self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
    ) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        self.count();
        self.begin(request, response, None);
        let account = self.held.account().clone();
        let Some(Body { writer, compression, .. }) = &mut self.body else { return false };
        let pending = std::mem::take(&mut self.pending);
        let mut piece = match compression.encode(&request.client, pending, false).await {
            Ok(piece) => piece,
            Err(reason) => return response.note_lost(Err(reason)),
        };
        let is_written = writer.write_or_spool(response, &piece, &account).await;
        piece.clear();
        piece.shrink_to(super::FLUSH_BYTES);
        self.pending = piece;
        self.count();
        is_written
    }

    /// Writes the rest and ends the response.
    pub(super) async fn finish(
        mut self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
    ) -> ResponseSummary {
        let status = self.head.status;
        let pending = std::mem::take(&mut self.pending);
        let length = pending.len() as u64;
        let compression = match &mut self.body {
            Some(body) => &mut body.compression,
            None => &mut Compression::of(request, &self.app, &mut self.head, Some(length)),
        };
        let rest = match compression.encode(&request.client, pending, true).await {
            Ok(rest) => rest,
            Err(reason) => {
                response.note_lost(Err(reason));
                return self.abort();
            }
        };
        self.begin(request, response, Some(rest.len() as u64));
        let account = self.held.account().clone();
        let Some(Body { mut writer, keep_alive, .. }) = self.body else {
            return ResponseSummary::broken(status, 0);
        };
        let written = writer.finish(response, &rest, keep_alive, &account).await;
        ResponseSummary { written, status, body_bytes: writer.written_bytes() }
    }

    /// Ends the response without its end mark, so that the client notices.
    pub(super) fn abort(self) -> ResponseSummary {
        let written_bytes = self.body.map_or(0, |body| body.writer.written_bytes());
        ResponseSummary::broken(self.head.status, written_bytes)
    }

    /// Writes the head into the output buffer, unless it was sent. `length` is that of the whole
    /// body as it is sent; without it, the body follows piece by piece.
    fn begin(&mut self, request: &Request<'_>, response: &mut ResponseWriter, length: Option<u64>) {
        if self.body.is_some() {
            return;
        }
        let compression = match length {
            Some(_) => Compression::none(),
            None => Compression::of(request, &self.app, &mut self.head, None),
        };
        let head = &self.head;
        let framing = match response.request.framing(head.status, length) {
            // No part was rendered.
            Framing::Bodyless(_) => Framing::Bodyless(head.content_length),
            framing => framing,
        };
        let facts = head.facts(response.request, framing);
        response.put_head(facts, &head.headers.bytes);
        let (writer, keep_alive) = (BodyWriter::new(framing), facts.keep_alive);
        self.body = Some(Body { writer, compression, keep_alive });
    }
}

/// A body whose head was written.
#[derive(Debug)]
struct Body {
    writer: BodyWriter,
    compression: Compression,
    keep_alive: bool,
}

#[cfg(test)]
mod tests;
