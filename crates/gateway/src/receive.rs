//! Reading a request body, whole, before a worker is taken.
//!
//! Called for scripts. Invariant: never more than the limit is kept; what belongs to the next
//! request stays in the input.

use crate::body::RequestBody;
use crate::connection::{Connection, Read};
use crate::reason::Reason;
use outboard_config::Limits;
use outboard_http1::{BodyFraming, Chunk, ChunkLimits, ChunkedDecoder};

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
    let received = whole(connection, limits).await;
    connection.body_read = received.is_ok();
    received
}

async fn whole(connection: &mut Connection, limits: &Limits) -> Result<Received, Reason> {
    let framing = connection.buffers().head.body();
    match framing {
        BodyFraming::None => Ok(Received::none()),
        BodyFraming::Length(length) if length > limits.body_bytes => Err(Reason::BodyTooLarge),
        BodyFraming::Length(length) => {
            let body = with_length(connection, limits, length).await?;
            Ok(Received { content_length: Some(body.len()), body })
        }
        BodyFraming::Chunked => {
            let body = chunked(connection, limits).await?;
            Ok(Received { content_length: Some(body.len()), body })
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

async fn with_length(
    connection: &mut Connection,
    limits: &Limits,
    length: u64,
) -> Result<RequestBody, Reason> {
    invite(connection).await?;
    let mut body = RequestBody::empty();
    loop {
        let left = usize::try_from(length - body.len()).unwrap_or(usize::MAX);
        let from = connection.consumed;
        let available = (connection.buffers().input.len() - from).min(left);
        keep(connection, &mut body, limits, from, available)?;
        connection.consumed = from + available;
        if body.len() == length {
            return Ok(body);
        }
        more(connection, limits).await?;
    }
}

async fn chunked(connection: &mut Connection, limits: &Limits) -> Result<RequestBody, Reason> {
    invite(connection).await?;
    let mut body = RequestBody::empty();
    let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
    loop {
        let from = connection.consumed;
        let input = &connection.buffers().input;
        let whole = input.len();
        match decoder.decode(&input[from..]).map_err(|_| Reason::BadChunk)? {
            Chunk::Data { range } => {
                if body.len() + range.len() as u64 > limits.body_bytes {
                    return Err(Reason::BodyTooLarge);
                }
                keep(connection, &mut body, limits, from + range.start, range.len())?;
                connection.consumed = from + range.end;
            }
            Chunk::End { consumed } => {
                connection.consumed = from + consumed;
                return Ok(body);
            }
            Chunk::NeedMore => {
                connection.consumed = whole;
                more(connection, limits).await?;
            }
        }
    }
}

fn keep(
    connection: &mut Connection,
    body: &mut RequestBody,
    limits: &Limits,
    from: usize,
    len: usize,
) -> Result<(), Reason> {
    let gateway = connection.gateway.clone();
    let piece = &connection.buffers().input[from..from + len];
    body.push(piece, limits.body_memory_bytes, &gateway.spool_folder).map_err(|error| {
        gateway.log_refusal(None, 0, Reason::SpoolFailed, &error.to_string());
        Reason::SpoolFailed
    })
}

/// Reads on, over what was consumed of the body: the head before it stays.
async fn more(connection: &mut Connection, limits: &Limits) -> Result<(), Reason> {
    let (head_len, consumed) = (connection.head_len, connection.consumed);
    connection.buffers().input.drain(head_len..consumed);
    connection.consumed = head_len;
    if connection.buffers().input.capacity() < READ_BYTES {
        connection.buffers().input.reserve(READ_BYTES);
    }
    match connection.read_within(limits.body_timeout_ms).await {
        Read::Some => Ok(()),
        Read::Closed => Err(Reason::BodyCut),
        Read::TimedOut => Err(Reason::BodyTimeout),
    }
}

/// Room for a read of body bytes.
const READ_BYTES: usize = 64 * 1024;
