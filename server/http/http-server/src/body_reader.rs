//! Reads a request body: completely, before a worker is assigned, or piece by piece.
//!
//! Called by handlers. Invariants: a body never exceeds the limit; bytes of the next request are left to the
//! connection; a client that sends too slowly is dropped.

use crate::client::Read;
use crate::pace::Pace;
use crate::request::Request;
use crate::response_writer::ResponseWriter;
use outboard_buffer::Held;
use outboard_buffer::RequestBody;
use outboard_config::Limits;
use outboard_http1::{BodyFraming, Chunk, ChunkLimits, ChunkedDecoder};
use outboard_log::Reason;
use std::io::ErrorKind;
use std::ops::Range;

/// A complete body.
pub struct Received {
    /// The body; empty if there is none.
    pub body: RequestBody,
    /// Its length; `None` if the request has no body, which differs from a body of length 0.
    pub content_length: Option<u64>,
}

impl Received {
    /// The request has no body.
    pub fn none() -> Self {
        Self { body: RequestBody::empty(), content_length: None }
    }
}

/// Reads the body of a request.
///
/// # Errors
/// Why it could not be read.
pub async fn body(
    request: &Request,
    response: &mut ResponseWriter,
    limits: &Limits,
) -> Result<Received, Reason> {
    let Some(mut pieces) = Pieces::of(request, response, limits).await? else {
        return Ok(Received::none());
    };
    let held = request.client.context.memory.bodies().hold(0);
    let mut body = RequestBody::empty().counted_in(held);
    let is_declared = pieces.is_declared();
    while let Some(piece) = pieces.next(request, limits).await? {
        append(request, &mut body, limits, piece)?;
    }
    // A client of HTTP/2 or HTTP/3 may end a stream after the head: that is no body (RFC 9110 6.4).
    let has_body = is_declared || body.length() > 0;
    Ok(Received { content_length: has_body.then(|| body.length()), body })
}

/// Reads the body of a request into memory, even if that is scarce.
///
/// # Errors
/// Why it could not be read.
pub async fn in_memory(
    request: &Request,
    response: &mut ResponseWriter,
    limits: &Limits,
) -> Result<(Vec<u8>, Held), Reason> {
    let received = body(request, response, limits).await?;
    received.body.into_memory(request.client.context.memory.bodies())
}

/// Reads a body piece by piece.
#[derive(Debug)]
pub struct Pieces {
    rest: Rest,
    length: Option<u64>,
    pace: Pace,
    /// What was read after the bytes that had arrived with the head, and how much of it was taken.
    read: Vec<u8>,
    taken: usize,
}

/// The rest of the body.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    /// Until the stream ends; the bytes so far.
    Stream(u64),
    Nothing,
}

impl Pieces {
    /// A reader for the body of a request, if it has one. Sends `100 Continue` if the client expects it.
    ///
    /// # Errors
    /// The body is too large, or the client is gone.
    pub async fn of(
        request: &Request,
        response: &mut ResponseWriter,
        limits: &Limits,
    ) -> Result<Option<Self>, Reason> {
        let (rest, length) = match request.body_framing() {
            BodyFraming::None => return Ok(None),
            BodyFraming::Length(length) if length > request.max_body_bytes(limits) => {
                return Err(Reason::BodyTooLarge);
            }
            BodyFraming::Length(length) => (Rest::Length(length), Some(length)),
            BodyFraming::Chunked => {
                (Rest::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default()))), None)
            }
            BodyFraming::Stream => (Rest::Stream(0), None),
        };
        send_continue(request, response).await?;
        Ok(Some(Self { rest, length, pace: Pace::of_body(limits), read: Vec::new(), taken: 0 }))
    }

    /// Whether the head has said that there is a body. Otherwise it begins with the first piece.
    pub fn is_declared(&self) -> bool {
        !matches!(self.rest, Rest::Stream(_))
    }

    /// The announced length.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Waits for the next piece. `None` at the end of the body.
    ///
    /// # Errors
    /// The body is invalid, too large, too slow or incomplete.
    pub async fn next<'p>(
        &'p mut self,
        request: &'p Request,
        limits: &Limits,
    ) -> Result<Option<&'p [u8]>, Reason> {
        let (source, range) = loop {
            let (source, taken) = self.take(request)?;
            if self.announced_bytes() > request.max_body_bytes(limits) {
                return Err(Reason::BodyTooLarge);
            }
            if let Some(range) = taken {
                break (source, range);
            }
            if self.is_over(request) {
                request.body.read_ahead.replace(self.read.split_off(self.taken));
                request.client.has_unread_body.set(false);
                return Ok(None);
            }
            match self.read_more(request).await {
                // The end of the stream is that of the body.
                Err(Reason::BodyCut) if self.is_over(request) => {}
                read => read?,
            }
        };
        self.pace.count(range.len());
        Ok(Some(match source {
            Source::Input => &request.head().1[range],
            Source::Read => &self.read[range],
        }))
    }

    fn is_over(&self, request: &Request) -> bool {
        match &self.rest {
            Rest::Nothing => true,
            Rest::Stream(_) => {
                request.client.transport.message().is_some_and(|stream| stream.is_read())
            }
            Rest::Length(_) | Rest::Chunked(_) => false,
        }
    }

    /// The minimum length of the body: one that is too large is refused without waiting for its bytes.
    fn announced_bytes(&self) -> u64 {
        match &self.rest {
            Rest::Chunked(decoder) => decoder.body_bytes(),
            Rest::Stream(bytes) => *bytes,
            // A length was checked before.
            Rest::Length(_) | Rest::Nothing => 0,
        }
    }

    /// A piece that has arrived.
    fn take(&mut self, request: &Request) -> Result<(Source, Option<Range<usize>>), Reason> {
        let input = request.received();
        if !input.is_empty() {
            let from = request.body.consumed.get();
            let (used, range) = self.rest.take(input)?;
            request.body.consumed.set(from + used);
            return Ok((Source::Input, range.map(|range| from + range.start..from + range.end)));
        }
        let from = self.taken;
        let (used, range) = self.rest.take(&self.read[from..])?;
        self.taken += used;
        Ok((Source::Read, range.map(|range| from + range.start..from + range.end)))
    }

    /// Reads more, over what was taken.
    async fn read_more(&mut self, request: &Request) -> Result<(), Reason> {
        // What is left belongs to no piece: only a chunk's head.
        debug_assert!(request.received().is_empty() && self.taken == self.read.len());
        self.read.clear();
        self.taken = 0;
        self.read.reserve(READ_BYTES);
        match self.pace.wait(request.client.read(&mut self.read)).await {
            Ok(Read::Some) => Ok(()),
            Ok(Read::Closed) => Err(Reason::BodyCut),
            Ok(Read::TimedOut) | Err(_) => Err(Reason::BodyTimeout),
        }
    }
}

/// Where a piece is.
enum Source {
    /// Behind the head.
    Input,
    /// In what was read since.
    Read,
}

impl Rest {
    /// Takes a piece off bytes that have arrived: how many bytes are used, and which of them are the piece.
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Range<usize>>), Reason> {
        match self {
            Self::Nothing => Ok((0, None)),
            Self::Stream(total) => {
                *total += bytes.len() as u64;
                Ok((bytes.len(), (!bytes.is_empty()).then_some(0..bytes.len())))
            }
            Self::Length(left) => {
                let available = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= available as u64;
                if *left == 0 {
                    *self = Self::Nothing;
                }
                Ok((available, (available > 0).then_some(0..available)))
            }
            Self::Chunked(decoder) => match decoder.decode(bytes).map_err(|_| Reason::BadChunk)? {
                Chunk::Data { range } => Ok((range.end, Some(range))),
                Chunk::End { consumed } => {
                    *self = Self::Nothing;
                    Ok((consumed, None))
                }
                Chunk::NeedMore => Ok((bytes.len(), None)),
            },
        }
    }
}

/// Sends `100 Continue` (RFC 9110 10.1.1), unless the body has begun.
async fn send_continue(request: &Request, response: &mut ResponseWriter) -> Result<(), Reason> {
    let (head, _) = request.head();
    let waits = head.expect_continue() && request.received().is_empty();
    if waits && !response.write_interim(100, b"").await {
        return Err(Reason::ClientGone);
    }
    Ok(())
}

fn append(
    request: &Request,
    body: &mut RequestBody,
    limits: &Limits,
    piece: &[u8],
) -> Result<(), Reason> {
    let context = &request.client.context;
    let memory_bytes = match context.memory.is_scarce() {
        true => limits.body_memory_bytes.min(SCARCE_MEMORY_BYTES),
        false => limits.body_memory_bytes,
    };
    body.push(piece, memory_bytes, &context.shared.temp_dir).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Reason::SpoolFull,
            _ => Reason::SpoolFailed,
        };
        context.log_refusal(reason, &error.to_string());
        reason
    })
}

/// The part of a body that stays in memory while that is scarce.
const SCARCE_MEMORY_BYTES: u64 = 4 << 10;
/// Room for a read of body bytes.
const READ_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
