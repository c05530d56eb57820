//! Reads a request body: completely, before a worker is assigned, or piece by piece.
//!
//! Called by handlers. Invariants: a body never exceeds the limit; bytes of the next request stay in
//! the input; a client that sends too slowly is dropped.

use crate::connection::{Connection, Read};
use crate::pace::Pace;
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

/// Reads the body of the request.
///
/// # Errors
/// Why it could not be read.
pub async fn body(connection: &mut Connection, limits: &Limits) -> Result<Received, Reason> {
    let Some(mut pieces) = Pieces::of(connection, limits).await? else {
        return Ok(Received::none());
    };
    let held = connection.context.memory.bodies().hold(0);
    let mut body = RequestBody::empty().counted_in(held);
    let is_declared = pieces.is_declared();
    while let Some(range) = pieces.next(connection, limits).await? {
        append(connection, &mut body, limits, range)?;
    }
    // A client of HTTP/2 or HTTP/3 may end a stream after the head: that is no body (RFC 9110 6.4).
    let has_body = is_declared || body.length() > 0;
    Ok(Received { content_length: has_body.then(|| body.length()), body })
}

/// Reads the body of the request into memory, even if that is scarce.
///
/// # Errors
/// Why it could not be read.
pub async fn in_memory(
    connection: &mut Connection,
    limits: &Limits,
) -> Result<(Vec<u8>, Held), Reason> {
    let received = body(connection, limits).await?;
    received.body.into_memory(connection.context.memory.bodies())
}

/// Reads a body piece by piece.
#[derive(Debug)]
pub struct Pieces {
    rest: Rest,
    length: Option<u64>,
    pace: Pace,
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
    /// A reader for the body of the request, if it has one. Sends `100 Continue` if the client expects it.
    ///
    /// # Errors
    /// The body is too large, or the client is gone.
    pub async fn of(connection: &mut Connection, limits: &Limits) -> Result<Option<Self>, Reason> {
        let (rest, length) = match connection.buffers().head.body() {
            BodyFraming::None => return Ok(None),
            BodyFraming::Length(length) if length > connection.max_body_bytes(limits) => {
                return Err(Reason::BodyTooLarge);
            }
            BodyFraming::Length(length) => (Rest::Length(length), Some(length)),
            BodyFraming::Chunked => {
                (Rest::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default()))), None)
            }
            BodyFraming::Stream => (Rest::Stream(0), None),
        };
        send_continue(connection).await?;
        Ok(Some(Self { rest, length, pace: Pace::of_body(limits) }))
    }

    /// Whether the head has said that there is a body. Otherwise it begins with the first piece.
    pub fn is_declared(&self) -> bool {
        !matches!(self.rest, Rest::Stream(_))
    }

    /// The announced length.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Waits for the next piece, a range of the connection's input that is valid until the next call.
    /// `None` at the end of the body.
    ///
    /// # Errors
    /// The body is invalid, too large, too slow or incomplete.
    pub async fn next(
        &mut self,
        connection: &mut Connection,
        limits: &Limits,
    ) -> Result<Option<Range<usize>>, Reason> {
        loop {
            let taken = self.take(connection)?;
            if self.announced_bytes() > connection.max_body_bytes(limits) {
                return Err(Reason::BodyTooLarge);
            }
            if let Some(range) = taken {
                self.pace.count(range.len());
                return Ok(Some(range));
            }
            if self.is_over(connection) {
                connection.body_read = true;
                return Ok(None);
            }
            match read_more(connection, &mut self.pace).await {
                // The end of the stream is that of the body.
                Err(Reason::BodyCut) if self.is_over(connection) => {}
                read => read?,
            }
        }
    }

    fn is_over(&self, connection: &Connection) -> bool {
        match &self.rest {
            Rest::Nothing => true,
            Rest::Stream(_) => {
                connection.transport.message().is_some_and(|stream| stream.is_read())
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
    fn take(&mut self, connection: &mut Connection) -> Result<Option<Range<usize>>, Reason> {
        let from = connection.consumed;
        let input = &connection.buffers().input;
        let whole = input.len();
        match &mut self.rest {
            Rest::Nothing => Ok(None),
            Rest::Stream(bytes) => {
                *bytes += (whole - from) as u64;
                connection.consumed = whole;
                Ok((whole > from).then_some(from..whole))
            }
            Rest::Length(left) => {
                let available = usize::try_from(*left).unwrap_or(usize::MAX).min(whole - from);
                *left -= available as u64;
                if *left == 0 {
                    self.rest = Rest::Nothing;
                }
                connection.consumed = from + available;
                Ok((available > 0).then_some(from..from + available))
            }
            Rest::Chunked(decoder) => {
                match decoder.decode(&input[from..]).map_err(|_| Reason::BadChunk)? {
                    Chunk::Data { range } => {
                        connection.consumed = from + range.end;
                        Ok(Some(from + range.start..from + range.end))
                    }
                    Chunk::End { consumed } => {
                        connection.consumed = from + consumed;
                        self.rest = Rest::Nothing;
                        Ok(None)
                    }
                    Chunk::NeedMore => {
                        connection.consumed = whole;
                        Ok(None)
                    }
                }
            }
        }
    }
}

/// Sends `100 Continue` (RFC 9110 10.1.1), unless the body has begun.
async fn send_continue(connection: &mut Connection) -> Result<(), Reason> {
    let buffers = connection.buffers();
    let waiting = buffers.head.expect_continue();
    let has_begun = buffers.input.len() > connection.head_len;
    if waiting && !has_begun && !connection.write_interim(100, b"").await {
        return Err(Reason::ClientGone);
    }
    Ok(())
}

fn append(
    connection: &mut Connection,
    body: &mut RequestBody,
    limits: &Limits,
    range: Range<usize>,
) -> Result<(), Reason> {
    let context = connection.context.clone();
    let piece = &connection.buffers().input[range];
    let memory_bytes = match context.memory.is_scarce() {
        true => limits.body_memory_bytes.min(SCARCE_MEMORY_BYTES),
        false => limits.body_memory_bytes,
    };
    body.push(piece, memory_bytes, &context.temp_dir).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Reason::SpoolFull,
            _ => Reason::SpoolFailed,
        };
        context.log_refusal(reason, &error.to_string());
        reason
    })
}

/// Reads more, over the consumed part of the body; the head remains in the input.
async fn read_more(connection: &mut Connection, pace: &mut Pace) -> Result<(), Reason> {
    let (head_len, consumed) = (connection.head_len, connection.consumed);
    connection.buffers().input.drain(head_len..consumed);
    connection.consumed = head_len;
    if connection.buffers().input.capacity() < READ_BYTES {
        connection.buffers().input.reserve(READ_BYTES);
    }
    match pace.wait(connection.read_more()).await {
        Ok(Read::Some) => Ok(()),
        Ok(Read::Closed) => Err(Reason::BodyCut),
        Ok(Read::TimedOut) | Err(_) => Err(Reason::BodyTimeout),
    }
}

/// The part of a body that stays in memory while that is scarce.
const SCARCE_MEMORY_BYTES: u64 = 4 << 10;
/// Room for a read of body bytes.
const READ_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
