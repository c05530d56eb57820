//! Reading a request body: whole, before a worker is taken, or piece by piece.
//!
//! Called for scripts and for what is handed to upstreams. Invariants: never more than the limit is
//! kept; what belongs to the next request stays in the input; a client that sends too slowly is let go.

use crate::connection::{Connection, Read};
use crate::pace::Pace;
use outboard_buffer::Held;
use outboard_buffer::RequestBody;
use outboard_config::Limits;
use outboard_http1::{BodyFraming, Chunk, ChunkLimits, ChunkedDecoder};
use outboard_log::Reason;
use std::io::ErrorKind;
use std::ops::Range;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A body and whether the request had one at all: a body of length 0 is one.
pub(crate) struct Received {
    pub(crate) body: RequestBody,
    pub(crate) content_length: Option<u64>,
}

impl Received {
    /// What a request without a body has.
    pub(crate) fn none() -> Self {
        Self { body: RequestBody::empty(), content_length: None }
    }
}

/// Reads the body of the present request.
pub(crate) async fn body(connection: &mut Connection, limits: &Limits) -> Result<Received, Reason> {
    let Some(mut pieces) = Pieces::of(connection, limits).await? else {
        return Ok(Received::none());
    };
    let held = connection.gateway.memory.bodies().hold(0);
    let mut body = RequestBody::empty().counted_in(held);
    while let Some(range) = pieces.next(connection, limits).await? {
        keep(connection, &mut body, limits, range)?;
    }
    Ok(Received { content_length: Some(body.len()), body })
}

/// Reads the body of the present request into memory, where it is counted, however scarce that is.
pub(crate) async fn in_memory(
    connection: &mut Connection,
    limits: &Limits,
) -> Result<(Vec<u8>, Held), Reason> {
    let received = body(connection, limits).await?;
    received.body.into_memory(connection.gateway.memory.bodies())
}

/// A request body on its way, piece by piece.
#[derive(Debug)]
pub(crate) struct Pieces {
    rest: Rest,
    length: Option<u64>,
    pace: Pace,
}

/// What is still to come.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    Nothing,
}

impl Pieces {
    /// The body of the present request, if it has one. A client that waits for it is told to go on.
    pub(crate) async fn of(
        connection: &mut Connection,
        limits: &Limits,
    ) -> Result<Option<Self>, Reason> {
        let (rest, length) = match connection.buffers().head.body() {
            BodyFraming::None => return Ok(None),
            BodyFraming::Length(length) if length > limits.body_bytes => {
                return Err(Reason::BodyTooLarge);
            }
            BodyFraming::Length(length) => (Rest::Length(length), Some(length)),
            BodyFraming::Chunked => {
                (Rest::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default()))), None)
            }
        };
        invite(connection).await?;
        Ok(Some(Self { rest, length, pace: Pace::of_body(limits) }))
    }

    /// The length that the client announced.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Waits for the next piece; it lies in the connection's input until the next call. `None` when
    /// the body has come to its end.
    pub(crate) async fn next(
        &mut self,
        connection: &mut Connection,
        limits: &Limits,
    ) -> Result<Option<Range<usize>>, Reason> {
        loop {
            let taken = self.take(connection)?;
            if self.announced_bytes() > limits.body_bytes {
                return Err(Reason::BodyTooLarge);
            }
            if let Some(range) = taken {
                self.pace.count(range.len());
                return Ok(Some(range));
            }
            if matches!(self.rest, Rest::Nothing) {
                connection.body_read = true;
                return Ok(None);
            }
            more(connection, &mut self.pace).await?;
        }
    }

    /// How long the body is at least. Nobody waits for bytes that are too many.
    fn announced_bytes(&self) -> u64 {
        match &self.rest {
            Rest::Chunked(decoder) => decoder.body_bytes(),
            // A length was looked at before.
            Rest::Length(_) | Rest::Nothing => 0,
        }
    }

    /// A piece that has come already.
    fn take(&mut self, connection: &mut Connection) -> Result<Option<Range<usize>>, Reason> {
        let from = connection.consumed;
        let input = &connection.buffers().input;
        let whole = input.len();
        match &mut self.rest {
            Rest::Nothing => Ok(None),
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

/// Tells a client that waits for it to go on (RFC 9110 10.1.1), unless it has begun already.
async fn invite(connection: &mut Connection) -> Result<(), Reason> {
    let buffers = connection.buffers();
    let waiting = buffers.head.expect_continue();
    let begun = buffers.input.len() > connection.head_len;
    if waiting && !begun && !connection.write_plain(CONTINUE).await {
        return Err(Reason::ClientGone);
    }
    Ok(())
}

fn keep(
    connection: &mut Connection,
    body: &mut RequestBody,
    limits: &Limits,
    range: Range<usize>,
) -> Result<(), Reason> {
    let gateway = connection.gateway.clone();
    let piece = &connection.buffers().input[range];
    let memory_bytes = match gateway.memory.is_scarce() {
        true => limits.body_memory_bytes.min(KEPT_WHILE_SCARCE_BYTES),
        false => limits.body_memory_bytes,
    };
    body.push(piece, memory_bytes, &gateway.spool).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Reason::SpoolFull,
            _ => Reason::SpoolFailed,
        };
        gateway.log_refusal(None, 0, reason, &error.to_string());
        reason
    })
}

/// Reads on, over what was consumed of the body: the head before it stays.
async fn more(connection: &mut Connection, pace: &mut Pace) -> Result<(), Reason> {
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

/// Of a body, so much stays in memory while that is scarce.
const KEPT_WHILE_SCARCE_BYTES: u64 = 4 << 10;
/// Room for a read of body bytes.
const READ_BYTES: usize = 64 * 1024;
