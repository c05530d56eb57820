//! [`ResponseRelay`]: the response of a connection, sent on an HTTP/2 stream.
//!
//! Invariant: an incomplete response resets the stream.

use super::Common;
use crate::pace::Pace;
use crate::transport::pipe::Pipe;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderMap, Response};
use outboard_buffer::Held;
use outboard_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, Method, ResponseBody,
    ResponseParser,
};
use outboard_reactor::{now_ms, with_deadline};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

/// The server's own responses stay below.
const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 16 << 10, header_bytes: 1 << 20, header_count: 10_000 };

/// Why a stream is reset.
pub(super) struct Reset(pub(super) Reason);

impl From<h2::Error> for Reset {
    /// The client knows about it.
    fn from(_: h2::Error) -> Self {
        Self(Reason::CANCEL)
    }
}

/// See the module.
pub(super) struct ResponseRelay {
    pub(super) pipe: Rc<Pipe>,
    pub(super) input: Vec<u8>,
    pub(super) method: Method,
    pub(super) pace: Pace,
    pub(super) common: Rc<Common>,
    pub(super) held: Held,
}

impl ResponseRelay {
    pub(super) async fn relay(&mut self, respond: &mut SendResponse<Bytes>) -> Result<(), Reset> {
        let mut parser = ResponseParser::new();
        loop {
            match parser.parse(&self.input, &LIMITS) {
                Ok(HeadStatus::Complete { head_len }) => {
                    let (head, body) = self.head(&parser);
                    self.input.drain(..head_len);
                    match head.status().is_informational() {
                        true => respond.send_informational(head)?,
                        false => return self.finish(respond, head, body).await,
                    }
                }
                Ok(HeadStatus::Partial) => {
                    if self.read(|context| respond.poll_reset(context)).await? == 0 {
                        return Err(Reset(Reason::INTERNAL_ERROR));
                    }
                }
                Err(_) => return Err(Reset(Reason::INTERNAL_ERROR)),
            }
        }
    }

    fn head(&self, parser: &ResponseParser) -> (Response<()>, ResponseBody) {
        let mut head = Response::new(());
        *head.status_mut() = http::StatusCode::from_u16(parser.status()).unwrap_or_default();
        *head.headers_mut() = fields(parser.headers(&self.input));
        (head, parser.body(self.method))
    }

    async fn finish(
        &mut self,
        respond: &mut SendResponse<Bytes>,
        head: Response<()>,
        body: ResponseBody,
    ) -> Result<(), Reset> {
        let is_empty = matches!(body, ResponseBody::None | ResponseBody::Length(0));
        let mut stream = respond.send_response(head, is_empty)?;
        match body {
            ResponseBody::None | ResponseBody::Length(0) => Ok(()),
            ResponseBody::Length(length) => self.send_length(&mut stream, length).await,
            ResponseBody::Chunked => self.send_chunks(&mut stream).await,
            ResponseBody::UntilClose => self.send_rest(&mut stream).await,
        }
    }

    async fn send_length(
        &mut self,
        stream: &mut SendStream<Bytes>,
        mut left: u64,
    ) -> Result<(), Reset> {
        loop {
            let data = std::mem::take(&mut self.input);
            left = left.checked_sub(data.len() as u64).ok_or(Reset(Reason::INTERNAL_ERROR))?;
            self.send(stream, data, left == 0).await?;
            if left == 0 {
                return Ok(());
            }
            if self.read(|context| stream.poll_reset(context)).await? == 0 {
                return Err(Reset(Reason::INTERNAL_ERROR));
            }
        }
    }

    async fn send_chunks(&mut self, stream: &mut SendStream<Bytes>) -> Result<(), Reset> {
        let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
        loop {
            let input = std::mem::take(&mut self.input);
            let (mut at, mut data) = (0, Vec::with_capacity(input.len()));
            let is_over = loop {
                match decoder.decode(&input[at..]) {
                    Ok(Chunk::Data { range }) => {
                        data.extend_from_slice(&input[at + range.start..at + range.end]);
                        at += range.end;
                    }
                    Ok(Chunk::NeedMore) => break false,
                    Ok(Chunk::End { .. }) => break true,
                    Err(_) => return Err(Reset(Reason::INTERNAL_ERROR)),
                }
            };
            let trailers = if is_over { fields(decoder.trailers()) } else { HeaderMap::new() };
            self.send(stream, data, is_over && trailers.is_empty()).await?;
            if !trailers.is_empty() {
                stream.send_trailers(trailers)?;
            }
            if is_over {
                return Ok(());
            }
            if self.read(|context| stream.poll_reset(context)).await? == 0 {
                return Err(Reset(Reason::INTERNAL_ERROR));
            }
        }
    }

    async fn send_rest(&mut self, stream: &mut SendStream<Bytes>) -> Result<(), Reset> {
        loop {
            let data = std::mem::take(&mut self.input);
            self.send(stream, data, false).await?;
            if self.read(|context| stream.poll_reset(context)).await? == 0 {
                return self.send(stream, Vec::new(), true).await;
            }
        }
    }

    /// Reads more, unless the client has reset the stream; 0 at the end.
    async fn read(
        &mut self,
        mut poll_reset: impl FnMut(&mut std::task::Context<'_>) -> Poll<Result<Reason, h2::Error>>,
    ) -> Result<usize, Reset> {
        let Self { pipe, input, .. } = self;
        // Earlier bytes have been sent, or are the beginning of a head.
        pipe.release();
        poll_fn(|context| {
            if poll_reset(context).is_ready() {
                return Poll::Ready(Err(Reset(Reason::CANCEL)));
            }
            ready!(pipe.poll_readable());
            Poll::Ready(Ok(pipe.try_read(input).unwrap_or(0)))
        })
        .await
    }

    /// Sends data as the windows of the client and the socket allow, within the time-out.
    async fn send(
        &mut self,
        stream: &mut SendStream<Bytes>,
        data: Vec<u8>,
        is_last: bool,
    ) -> Result<(), Reset> {
        let mut data = Bytes::from(data);
        while !data.is_empty() {
            self.room(stream).await?;
            stream.reserve_capacity(data.len());
            let granted = poll_fn(|context| {
                if stream.poll_reset(context).is_ready() {
                    return Poll::Ready(None);
                }
                stream.poll_capacity(context)
            });
            let granted = self.pace.wait(granted).await.ok().flatten();
            let count = granted.ok_or(Reset(Reason::CANCEL))??;
            self.pace.count(count);
            let piece = data.split_to(count.min(data.len()));
            self.common.send_queue.add(piece.len());
            stream.send_data(piece, is_last && data.is_empty())?;
            if data.is_empty() && is_last {
                return Ok(());
            }
        }
        if is_last {
            stream.send_data(Bytes::new(), true)?;
        } else {
            self.widen();
        }
        Ok(())
    }

    /// Waits until the queue of the socket has room, within the time-out.
    async fn room(&self, stream: &mut SendStream<Bytes>) -> Result<(), Reset> {
        let (queue, server) = (&self.common.send_queue, &self.common.server);
        let timeout_ms = server.limits().write_timeout_ms;
        loop {
            let room = poll_fn(|context| match stream.poll_reset(context).is_ready() {
                true => Poll::Ready(Err(Reset(Reason::CANCEL))),
                false => queue.poll_room().map(Ok),
            });
            let until_ms = now_ms().max(queue.progress_ms()) + timeout_ms;
            match with_deadline(until_ms, room).await {
                Ok(room) => return room,
                Err(_) if queue.progress_ms() + timeout_ms > now_ms() => {}
                Err(_) => return Err(Reset(Reason::CANCEL)),
            }
        }
    }

    /// The client reads fast: the pipe may hold more, if there is memory.
    fn widen(&mut self) {
        let by_bytes = self.pipe.widening_bytes();
        if by_bytes > 0 && self.held.try_grow(2 * by_bytes) {
            self.pipe.widen(by_bytes);
        }
    }
}

/// The fields of a head or of trailers, without those of the connection (RFC 9113 8.2.2).
fn fields<'a>(lines: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        let is_own = [&b"connection"[..], b"keep-alive", b"transfer-encoding", b"upgrade"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own));
        let name = http::HeaderName::from_bytes(name);
        let value = http::HeaderValue::from_bytes(value);
        if let (Ok(name), Ok(value), false) = (name, value, is_own) {
            fields.append(name, value);
        }
    }
    fields
}
