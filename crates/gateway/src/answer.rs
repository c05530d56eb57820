//! Putting an answer on the wire: head, framing, body.
//!
//! Called by whoever has an answer. Invariants: exactly one framing (RFC 9112 6.3); what is
//! announced is sent or the connection is broken, so that no client takes a cut answer for a
//! whole one; a client that takes nothing for `write_timeout`, or too little, is given up.

use crate::connection::Connection;
use crate::header_block::HeaderBlock;
use crate::pace::Pace;
use crate::wire::Wire;
use outboard_http1::{
    CHUNK_END, Method, Version, write_chunk_head, write_content_length, write_head_end,
    write_status_line, write_status_line_with_reason,
};
use outboard_log::Reason;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

/// Bodies up to this are copied behind the head, so that both go out in one plain write.
pub(crate) const COPY_BYTES: usize = 16 * 1024;
/// Most bytes of a file that one `sendfile(2)` is asked for, so that others get their turn.
const SENDFILE_BYTES: usize = 1 << 20;

/// The methods that scripts are usually asked by; they get any other as well, but for CONNECT and
/// TRACE.
pub(crate) const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it was written.
    Whole { keep_alive: bool },
    /// `101` was written: another protocol has the connection.
    Switched,
    /// The client is gone, or the answer could not be finished.
    Broken,
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body: 204, 304, or the answer to HEAD. The length is announced if known.
    Bodyless(Option<u64>),
    /// As many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The connection ends with the body (HTTP/1.0).
    UntilClose,
}

/// The facts of the request that shape its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) keep_alive: bool,
}

impl Asked {
    /// Of the present request.
    pub(crate) fn of(connection: &mut Connection) -> Self {
        let may_go_on = connection.may_go_on();
        let head = &connection.buffers().head;
        Self {
            method: head.method_kind(),
            version: head.version(),
            keep_alive: head.keep_alive() && may_go_on,
        }
    }

    /// The facts of a head under which the gateway's own `Date` and `Server` stand.
    pub(crate) fn head(&self, status: u16, framing: Framing) -> HeadFacts<'static> {
        HeadFacts {
            status,
            reason: b"",
            framing,
            keep_alive: self.keep_alive && framing != Framing::UntilClose,
            version: self.version,
            own_date: false,
            own_server: false,
        }
    }

    /// The framing of a body that is at hand.
    pub(crate) fn framing_of_whole(&self, status: u16, length: u64) -> Framing {
        match status {
            // RFC 9110 15.4.5: a length in a 304 would have to be that of the 200.
            304 => Framing::Bodyless(None),
            _ => self.framing(status, Some(length)),
        }
    }

    /// The framing of a body whose length may be known.
    pub(crate) fn framing(&self, status: u16, length: Option<u64>) -> Framing {
        if self.method == Method::Head || matches!(status, 204 | 304) {
            let length = if status == 204 { None } else { length };
            return Framing::Bodyless(length);
        }
        match length {
            Some(length) => Framing::Length(length),
            None if self.version == Version::Http11 => Framing::Chunked,
            None => Framing::UntilClose,
        }
    }
}

/// What goes into a head besides its header lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadFacts<'a> {
    pub(crate) status: u16,
    /// Empty for the standard phrase.
    pub(crate) reason: &'a [u8],
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) version: Version,
    pub(crate) own_date: bool,
    pub(crate) own_server: bool,
}

impl Connection {
    /// Writes status line, framing and `lines` into the output.
    pub(crate) fn put_head(&mut self, facts: HeadFacts<'_>, lines: &[u8]) {
        let gateway = self.gateway.clone();
        let keep_alive = facts.keep_alive && !self.has_unread_body();
        let out = &mut self.buffers().output;
        out.clear();
        if facts.reason.is_empty()
            || write_status_line_with_reason(out, facts.status, facts.reason).is_err()
        {
            out.clear();
            write_status_line(out, facts.status);
        }
        if !facts.own_server {
            out.extend_from_slice(b"Server: outboard\r\n");
        }
        if !facts.own_date {
            gateway.put_date(out);
        }
        out.extend_from_slice(lines);
        match facts.framing {
            Framing::Length(length) | Framing::Bodyless(Some(length)) => {
                write_content_length(out, length);
            }
            Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Framing::Bodyless(None) | Framing::UntilClose => {}
        }
        match (keep_alive, facts.version) {
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, Version::Http11) => {}
        }
        write_head_end(out);
    }

    /// Writes the output and `body` behind it. False when the client is gone.
    pub(crate) async fn flush(&mut self, body: &[u8]) -> bool {
        // Within the process a second piece costs nothing, and streams that wait are many.
        let is_copied = body.len() <= COPY_BYTES && !self.wire.is_http2();
        let out = &mut self.buffers().output;
        if is_copied {
            out.extend_from_slice(body);
            let out = std::mem::take(out);
            let slices = &mut [IoSlice::new(&out)];
            let written = write_within(&self.wire, slices, &mut self.pace).await;
            self.buffers().output = out;
            return self.note_lost(written);
        }
        let out = std::mem::take(out);
        let slices = &mut [IoSlice::new(&out), IoSlice::new(body)];
        let written = write_within(&self.wire, slices, &mut self.pace).await;
        self.buffers().output = out;
        self.note_lost(written)
    }

    /// Writes one chunk of a chunked body, after whatever the output holds.
    pub(crate) async fn flush_chunk(&mut self, data: &[u8]) -> bool {
        let mut out = std::mem::take(&mut self.buffers().output);
        write_chunk_head(&mut out, data.len());
        let slices = &mut [IoSlice::new(&out), IoSlice::new(data), IoSlice::new(CHUNK_END)];
        let written = write_within(&self.wire, slices, &mut self.pace).await;
        out.clear();
        self.buffers().output = out;
        self.note_lost(written)
    }

    /// Remembers why the client cannot be written to; true when it can.
    pub(crate) fn note_lost(&mut self, written: Result<(), Reason>) -> bool {
        self.lost = written.err();
        self.lost.is_none()
    }

    /// Sends a part of a file.
    pub(crate) async fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        mut offset: u64,
        mut left: u64,
    ) -> bool {
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(SENDFILE_BYTES);
            match self.wire.try_send_file(file, &mut offset, most) {
                // The file has become shorter than was announced.
                Ok(Some(0)) => return false,
                Err(_) => return self.note_lost(Err(Reason::ClientGone)),
                Ok(Some(count)) => {
                    self.pace.count(count);
                    left -= count as u64;
                }
                Ok(None) => {
                    if self.pace.wait(self.wire.writable()).await.is_err() {
                        return self.note_lost(Err(Reason::WriteTimeout));
                    }
                }
            }
        }
        true
    }

    /// Answers with a whole body.
    pub(crate) async fn respond(
        &mut self,
        asked: Asked,
        status: u16,
        headers: &HeaderBlock,
        body: &[u8],
    ) -> Sent {
        let framing = asked.framing(status, Some(body.len() as u64));
        let own_server = headers.owns_server;
        self.put_head(HeadFacts { own_server, ..asked.head(status, framing) }, &headers.bytes);
        let body = if matches!(framing, Framing::Bodyless(_)) { b"" } else { body };
        if self.flush(body).await {
            Sent::Whole { keep_alive: asked.keep_alive }
        } else {
            Sent::Broken
        }
    }
}

/// Writes all, as long as the client keeps the pace.
pub(crate) async fn write_within(
    wire: &Wire,
    mut slices: &mut [IoSlice<'_>],
    pace: &mut Pace,
) -> Result<(), Reason> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match wire.try_write(slices) {
            Ok(Some(count)) => {
                pace.count(count);
                IoSlice::advance_slices(&mut slices, count);
            }
            Ok(None) => {
                if pace.wait(wire.writable()).await.is_err() {
                    return Err(Reason::WriteTimeout);
                }
            }
            Err(_) => return Err(Reason::ClientGone),
        }
    }
    Ok(())
}

/// Answers a request that could not be parsed, and closes.
pub(crate) async fn refuse_unparsed(connection: &mut Connection, reason: Reason) -> Sent {
    let asked = Asked { method: Method::Get, version: Version::Http11, keep_alive: false };
    let generation = connection.gateway.generation();
    let tells = generation.config.tells_reasons;
    let (mut headers, page) = (error_headers(reason, tells), error_page(reason, tells));
    generation.apply_rules(&mut headers);
    connection.respond(asked, reason.status(), &headers, page.as_bytes()).await
}

/// The header lines of an error answer; `tells` whether its reason is one of them.
pub(crate) fn error_headers(reason: Reason, tells: bool) -> HeaderBlock {
    let mut headers = HeaderBlock::default();
    let mut add = |name: &str, value: &str| {
        headers.add(name.as_bytes(), value.as_bytes()).expect("constant headers are valid");
    };
    add("Content-Type", "text/html; charset=utf-8");
    if tells {
        add("X-Outboard-Reason", reason.code());
    }
    match reason {
        Reason::MemoryFull
        | Reason::QueueFull
        | Reason::QueueTimeout
        | Reason::AppDown
        | Reason::Draining
        | Reason::EntityOverload => {
            add("Retry-After", "1");
        }
        Reason::MethodNotAllowed => add("Allow", "GET, HEAD"),
        Reason::EntityMethod => add("Allow", "GET, HEAD, PUT, DELETE"),
        Reason::EntityToken => add("WWW-Authenticate", "Bearer"),
        Reason::MethodRefused => add("Allow", METHODS),
        _ => {}
    }
    headers
}

/// A small page that says what happened, without a word about the server's insides.
pub(crate) fn error_page(reason: Reason, tells: bool) -> String {
    status_page(reason.status(), if tells { reason.text() } else { reason.public_text() })
}

/// The page of a status that a rewrite rule asks for, or of a reason.
pub(crate) fn status_page(status: u16, text: &str) -> String {
    let mut line = Vec::new();
    write_status_line(&mut line, status);
    let title = String::from_utf8_lossy(&line[9..]).trim_end().to_owned();
    format!(
        "<!doctype html><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:36em;\
         margin:15vh auto;padding:0 1em;color:#223}}@media(prefers-color-scheme:dark)\
         {{body{{background:#15181d;color:#dde}}}}</style><h1>{title}</h1><p>{text}</p>\n"
    )
}
