//! Writes a response to the connection: head, framing, body.
//!
//! Called by the service. For HTTP/1.1 a head is text in front of the body. For HTTP/2 its lines wait in
//! the output buffer, and the first write passes them to the stream. Invariants: exactly one framing (RFC
//! 9112 6.3); a body that is shorter than announced breaks the connection, so that no client takes it for
//! complete; a client that reads nothing for `limits.write_timeout`, or too slowly, is dropped.

use crate::client::Client;
use crate::file_pages::{self, PART_BYTES};
use crate::header_block::HeaderBlock;
use crate::http3_alternative;
use crate::message_stream::{Announced, PendingHead};
use crate::pace::Pace;
use crate::response_facts::{Framing, HeadFacts, RequestFacts, Written};
use crate::response_fields::ResponseFields;
use crate::spool::Spool;
use crate::upgrade::UpgradeHandler;
use outboard_http1::{
    CHUNK_END, Version, write_chunk_head, write_content_length, write_head_end, write_status_line,
    write_status_line_with_reason,
};
use outboard_log::{Reason, Wall};
use outboard_reactor::now_ms;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// Bodies up to this are copied behind the head, so that both go out in one plain write.
pub const COPY_BYTES: usize = 16 * 1024;

/// Pages that were loaded are taken to be in memory for so long, which saves looks for fast clients.
const FRESH_MS: u64 = 20;

/// Writes the response to the request that a connection is at. See the module.
pub struct ResponseWriter {
    /// Who receives it.
    pub client: Rc<Client>,
    /// The properties of the request that it depends on.
    pub request: RequestFacts,
    /// A part of the response that is not written yet.
    pub(crate) output: Vec<u8>,
    /// Fields of the response that access rules decide.
    fields: Option<Box<ResponseFields>>,
    /// The head in the output buffer, if the transport takes heads by themselves.
    pending_head: Option<PendingHead>,
    /// The part of the response that the client has not read yet.
    pub(crate) spool: Option<Spool>,
    /// Why the client could not be written to.
    lost: Option<Reason>,
    /// Receives the connection after a `101`.
    upgrade_handler: Option<UpgradeHandler>,
    /// When the head of the response was written; `None` before.
    pub head_written: Option<Wall>,
    /// How fast the client reads the response.
    pub(crate) pace: Pace,
}

impl ResponseWriter {
    pub(crate) fn new(client: Rc<Client>) -> Self {
        let pace = Pace::of_response(&client.context.limits());
        Self {
            client,
            request: RequestFacts::UNREAD,
            output: Vec::new(),
            fields: None,
            pending_head: None,
            spool: None,
            lost: None,
            upgrade_handler: None,
            head_written: None,
            pace,
        }
    }

    /// A response begins; `buffer` is taken, unless there is one of the response before.
    pub(crate) fn begin(&mut self, request: RequestFacts, buffer: &mut Vec<u8>) {
        self.request = request;
        if self.output.capacity() == 0 {
            self.output = std::mem::take(buffer);
        }
        self.output.clear();
        self.pace = Pace::of_response(&self.client.context.limits());
    }

    /// The buffer, when the response has ended.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Who receives the connection after it.
    pub(crate) fn into_upgrade_handler(self) -> Option<UpgradeHandler> {
        self.upgrade_handler
    }

    /// Sets fields of the response, whatever responds.
    pub fn set_fields(&mut self, fields: ResponseFields) {
        self.fields = Some(Box::new(fields));
    }

    /// Writes a head with these header lines into the output buffer.
    pub fn put_head(&mut self, facts: HeadFacts<'_>, lines: &[u8]) {
        self.put_head_with(facts, |out| out.extend_from_slice(lines));
    }

    /// The same with lines that `write_lines` appends, each ended by CRLF.
    pub fn put_head_with(&mut self, facts: HeadFacts<'_>, write_lines: impl FnOnce(&mut Vec<u8>)) {
        let keep_alive = facts.keep_alive && !self.client.has_unread_body.get();
        self.head_written = Some(Wall::now());
        let is_message = self.client.transport.message().is_some();
        let alternative_port = http3_alternative::port(&self.client, facts.version);
        let context = &self.client.context;
        let (out, fields) = (&mut self.output, self.fields.take());
        out.clear();
        if !is_message {
            put_status_line(out, facts);
        }
        if !facts.own_server {
            out.extend_from_slice(b"Server: outboard\r\n");
        }
        if !facts.own_date {
            context.write_date(out);
        }
        http3_alternative::write(out, alternative_port);
        crate::response_fields::write(fields, out, write_lines);
        if let Framing::Length(length) | Framing::Bodyless(Some(length)) = facts.framing {
            write_content_length(out, length);
        }
        if is_message {
            let announced = announced(facts);
            self.pending_head = Some(PendingHead { status: facts.status, announced });
            return;
        }
        if facts.framing == Framing::Chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        match (keep_alive, facts.version) {
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, _) => {}
        }
        write_head_end(out);
    }

    /// Passes a head in the output buffer to the stream.
    pub(crate) fn send_pending_head(&mut self) {
        let Some(PendingHead { status, announced }) = self.pending_head.take() else { return };
        let Some(stream) = self.client.transport.message() else { return };
        stream.send_head(status, &self.output, announced);
        self.output.clear();
    }

    /// Writes an interim response (RFC 9110 15.2) with these header lines. False if the client is gone.
    pub async fn write_interim(&mut self, status: u16, lines: &[u8]) -> bool {
        if let Some(stream) = self.client.transport.message() {
            stream.send_interim(status, lines);
            return true;
        }
        let mut head = Vec::with_capacity(64 + lines.len());
        write_status_line(&mut head, status);
        head.extend_from_slice(lines);
        write_head_end(&mut head);
        let slices = &mut [IoSlice::new(&head)];
        self.client.transport.write_all(slices, &mut self.pace).await.is_ok()
    }

    /// Writes the output buffer and then `body`. False if the client is gone.
    pub async fn flush(&mut self, body: &[u8]) -> bool {
        self.send_pending_head();
        // The bytes of a stream are copied into its buffer anyway.
        let is_copied = body.len() <= COPY_BYTES && self.client.transport.message().is_none();
        let out = &mut self.output;
        if is_copied {
            out.extend_from_slice(body);
            let out = std::mem::take(out);
            let slices = &mut [IoSlice::new(&out)];
            let written = self.client.transport.write_all(slices, &mut self.pace).await;
            self.output = out;
            self.output.clear();
            return self.note_lost(written);
        }
        let out = std::mem::take(out);
        let slices = &mut [IoSlice::new(&out), IoSlice::new(body)];
        let written = self.client.transport.write_all(slices, &mut self.pace).await;
        self.output = out;
        self.output.clear();
        self.note_lost(written)
    }

    /// Writes the output buffer and then one chunk of a chunked body. False if the client is gone.
    pub async fn flush_chunk(&mut self, data: &[u8]) -> bool {
        let mut out = std::mem::take(&mut self.output);
        write_chunk_head(&mut out, data.len());
        let slices = &mut [IoSlice::new(&out), IoSlice::new(data), IoSlice::new(CHUNK_END)];
        let written = self.client.transport.write_all(slices, &mut self.pace).await;
        out.clear();
        self.output = out;
        self.note_lost(written)
    }

    /// Why the client could not be written to, once.
    pub fn take_lost(&mut self) -> Option<Reason> {
        self.lost.take()
    }

    /// Remembers why a write failed; true if it did not.
    pub fn note_lost(&mut self, written: Result<(), Reason>) -> bool {
        self.lost = written.err();
        self.lost.is_none()
    }

    /// Writes a part of a file. False if the client is gone, or the file became shorter.
    pub async fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        mut offset: u64,
        mut left: u64,
    ) -> bool {
        self.send_pending_head();
        let mut loaded_bytes = 0;
        while left > 0 {
            if loaded_bytes == 0 {
                loaded_bytes = left.min(PART_BYTES);
                let loaded = file_pages::load(file, offset, loaded_bytes);
                if let Err(reason) = self.client.unless_gone(loaded).await {
                    return self.note_lost(Err(reason));
                }
            }
            let most = usize::try_from(loaded_bytes).unwrap_or(usize::MAX);
            match self.client.transport.try_send_file(file, &mut offset, most) {
                // The file became shorter.
                Ok(Some(0)) => return false,
                Err(_) => return self.note_lost(Err(Reason::ClientGone)),
                Ok(Some(count)) => {
                    self.pace.count(count);
                    left -= count as u64;
                    loaded_bytes -= count as u64;
                }
                Ok(None) => {
                    let full_at_ms = now_ms();
                    if self.pace.wait(self.client.transport.writable()).await.is_err() {
                        return self.note_lost(Err(Reason::WriteTimeout));
                    }
                    if now_ms() > full_at_ms + FRESH_MS {
                        // The pages may have been reclaimed.
                        loaded_bytes = 0;
                    }
                }
            }
        }
        true
    }

    /// Writes a response with a complete body.
    pub async fn respond(&mut self, status: u16, headers: &HeaderBlock, body: &[u8]) -> Written {
        let request = self.request;
        let framing = request.framing(status, Some(body.len() as u64));
        let own_server = headers.owns_server;
        self.put_head(HeadFacts { own_server, ..request.head(status, framing) }, &headers.bytes);
        let body = if matches!(framing, Framing::Bodyless(_)) { b"" } else { body };
        if self.flush(body).await {
            Written::Complete { keep_alive: request.keep_alive }
        } else {
            Written::Broken
        }
    }

    /// Writes `101` with these header lines. `handler` receives the connection after it.
    pub async fn upgrade(&mut self, headers: &HeaderBlock, handler: UpgradeHandler) -> Written {
        let facts =
            HeadFacts { keep_alive: true, ..self.request.head(101, Framing::Bodyless(None)) };
        self.put_head(facts, &headers.bytes);
        if !self.flush(b"").await {
            return Written::Broken;
        }
        self.upgrade_handler = Some(handler);
        Written::Upgraded
    }
}

fn put_status_line(out: &mut Vec<u8>, facts: HeadFacts<'_>) {
    if facts.reason.is_empty()
        || write_status_line_with_reason(out, facts.status, facts.reason).is_err()
    {
        out.clear();
        write_status_line(out, facts.status);
    }
}

/// The end of a response on a stream.
fn announced(facts: HeadFacts<'_>) -> Announced {
    match facts.framing {
        // What follows is the other protocol.
        _ if facts.status == 101 => Announced::Open,
        Framing::Bodyless(_) | Framing::Length(0) => Announced::Nothing,
        Framing::Length(length) => Announced::Length(length),
        Framing::Chunked | Framing::UntilClose | Framing::Stream => Announced::Open,
    }
}

#[cfg(test)]
mod tests;
