//! [`Stream`]: relays a script's response that arrives in pieces.
//!
//! Used by [`super::relay`]. Invariants: pieces are sent in order; a response that fails ends
//! without its end mark.

use crate::app::App;
use crate::compression::Compression;
use crate::request::{Request, ResponseSummary};
use crate::response_head::ResponseHead;
use outboard_development::tag;
use outboard_http_server::{BodyWriter, ResponseWriter};
use outboard_log::Level;
use outboard_php_pool::exchange::{End, Exchange, ResponseData};
use std::task::Poll;

/// See the module.
pub(super) struct Stream<'a> {
    pub(super) app: &'a App,
    pub(super) head: &'a ResponseHead,
    pub(super) exchange: &'a Exchange,
    pub(super) compression: Compression,
}

impl Stream<'_> {
    pub(super) async fn send(
        mut self,
        request: &Request<'_>,
        response: &mut ResponseWriter,
        first: ResponseData,
    ) -> ResponseSummary {
        let head = self.head;
        let tag = tag::of(request.gateway.development().as_deref(), &head.headers);
        let length = head.content_length.map(|length| length + tag.len() as u64);
        let framing = response.request.framing(head.status, length);
        let facts = head.facts(response.request, framing);
        response.put_head(facts, &head.headers.bytes);
        let mut writer = BodyWriter::new(framing);
        let mut arrived = first;
        loop {
            let is_last = arrived.end == Some(End::Complete);
            let ResponseData { body, trailers, end, held, .. } = arrived;
            if !trailers.is_empty() {
                self.set_trailers(&mut writer, request, &trailers);
            }
            let mut piece = match self.compression.encode(&request.client, body, is_last).await {
                Ok(piece) => piece,
                Err(reason) => {
                    response.note_lost(Err(reason));
                    return ResponseSummary::broken(head.status, writer.written_bytes());
                }
            };
            if is_last {
                piece.extend_from_slice(tag);
            }
            let account = &self.app.memory.responses;
            if is_last {
                let written = writer.finish(response, &piece, facts.keep_alive, account).await;
                let body_bytes = writer.written_bytes();
                return ResponseSummary { written, status: head.status, body_bytes };
            }
            if !writer.write_or_spool(response, &piece, account).await {
                return ResponseSummary::broken(head.status, writer.written_bytes());
            }
            drop((piece, held));
            if let Some(End::Failed(reason)) = end {
                request.client.context.count_refusal(reason);
                let text = request.describe();
                request.gateway.log_refusal(Some(self.app), request.request_id, reason, &text);
                return ResponseSummary::broken(head.status, writer.written_bytes());
            }
            let next = response.next_of_response(u64::MAX, |untaken_bytes| {
                self.exchange.set_spooled(usize::try_from(untaken_bytes).unwrap_or(usize::MAX));
                self.exchange.take().map_or(Poll::Pending, Poll::Ready)
            });
            arrived = match next.await {
                Ok(arrived) => arrived,
                Err(reason) => {
                    response.note_lost(Err(reason));
                    return ResponseSummary::broken(head.status, writer.written_bytes());
                }
            };
        }
    }

    /// What is invalid is logged and not sent: the body is on its way.
    fn set_trailers(&self, writer: &mut BodyWriter, request: &Request<'_>, payload: &[u8]) {
        match ResponseHead::read_trailers(payload) {
            Ok(mut head) => {
                if let Some(text) = head.take_dropped() {
                    self.app.log_text(Level::Warn, request.request_id, &text);
                }
                writer.set_trailers(head.headers);
            }
            Err(bad) => self.app.log_text(Level::Error, request.request_id, &bad.text),
        }
    }
}
