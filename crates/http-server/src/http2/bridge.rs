//! [`Bridge`]: one stream, between the client and the connection that serves it.
//!
//! Invariants: the request is written as HTTP/1.1 without what could be read in two ways; an answer
//! that is not whole resets the stream.

use super::Common;
use crate::connection::Connection;
use crate::connections::Entry;
use crate::pace::Pace;
use crate::peer::PeerInfo;
use crate::service::Service;
use crate::transport::Transport;
use crate::transport::pipe::Pipe;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use outboard_buffer::Held;
use outboard_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, LAST_CHUNK, Method, ResponseBody,
    ResponseParser, write_chunk_head, write_head_end, write_header, write_request_line,
};
use outboard_reactor::{now_ms, spawn, with_deadline};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Poll, ready};

/// The gateway's own answers have less.
const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 16 << 10, header_bytes: 1 << 20, header_count: 10_000 };
const CHUNK_END: &[u8] = b"\r\n";

/// See the module.
pub(super) struct Bridge {
    common: Rc<Common>,
    head: Request<()>,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    held: Held,
}

/// Why a stream ends before its answer does.
struct Broken(Reason);

impl From<h2::Error> for Broken {
    /// The client knows already.
    fn from(_: h2::Error) -> Self {
        Self(Reason::CANCEL)
    }
}

impl Bridge {
    pub(super) fn new(
        common: Rc<Common>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        held: Held,
    ) -> Self {
        let (parts, body) = request.into_parts();
        Self { common, head: Request::from_parts(parts, ()), body, respond, held }
    }

    /// Has the request answered.
    pub(super) async fn serve<S: Service>(self, service: Rc<S>, entry: Entry) {
        let Self { common, head, body, mut respond, held } = self;
        let (pipe, far) = Pipe::pair();
        let transport = Transport::http2(far, common.local);
        let mut peer = PeerInfo::new(common.peer.address);
        peer.chosen = common.peer.chosen;
        let connection =
            Connection::new(common.server.clone(), common.listener.clone(), transport, peer, entry);
        spawn(connection.serve(service));
        let Some(written) = written(&head, body.is_end_stream()) else {
            return respond.send_reset(Reason::PROTOCOL_ERROR);
        };
        let pipe = Rc::new(pipe);
        let is_written = write(&pipe, &written).await.is_ok();
        drop(written);
        if is_written && !body.is_end_stream() {
            spawn(send_body(pipe.clone(), body, !head.headers().contains_key("content-length")));
        }
        let mut answer = Answer {
            pipe,
            input: Vec::new(),
            method: Method::of(head.method().as_str().as_bytes()),
            pace: Pace::of_response(&common.server.limits()),
            common: common.clone(),
            held,
        };
        drop(head);
        if let Err(Broken(reason)) = answer.relay(&mut respond).await {
            respond.send_reset(reason);
        }
        answer.pipe.close();
    }
}

/// The host of a request; `None` where two are named (RFC 9113 8.3.1), or the same one twice
/// (RFC 9112 3.2).
fn host(head: &Request<()>) -> Option<&[u8]> {
    let mut lines = head.headers().get_all("host").iter().map(|host| host.as_bytes());
    let (host, second) = (lines.next(), lines.next());
    let authority = head.uri().authority().map(|authority| authority.as_str().as_bytes());
    // The scheme's own port need not be written (RFC 3986 6.2.3).
    let bare = |host: &'_ [u8]| host.strip_suffix(b":443").unwrap_or(host).to_ascii_lowercase();
    let agree = authority.zip(host).is_none_or(|(authority, host)| bare(authority) == bare(host));
    (second.is_none() && agree).then_some(authority.or(host).unwrap_or_default())
}

/// The request's head in HTTP/1.1 (RFC 9113 8.3.1); `None` for one that is malformed.
fn written(head: &Request<()>, is_whole: bool) -> Option<Vec<u8>> {
    let host = host(head)?;
    in_http1(head, host, is_whole).ok()
}

fn in_http1(
    head: &Request<()>,
    host: &[u8],
    is_whole: bool,
) -> Result<Vec<u8>, outboard_http1::InvalidHeader> {
    let mut bytes = Vec::with_capacity(1024);
    let target = head.uri().path_and_query().map_or("*", |target| target.as_str());
    let target =
        if head.method() == http::Method::OPTIONS && target == "/*" { "*" } else { target };
    write_request_line(&mut bytes, head.method().as_str().as_bytes(), target.as_bytes())?;
    write_header(&mut bytes, b"Host", host)?;
    let mut cookies: Vec<u8> = Vec::new();
    for (name, value) in head.headers() {
        match name.as_str() {
            // Interim answers need no asking for here.
            "host" | "expect" => {}
            // RFC 9113 8.2.3.
            "cookie" if cookies.is_empty() => cookies.extend_from_slice(value.as_bytes()),
            "cookie" => cookies.extend([b"; ", value.as_bytes()].concat()),
            name => write_header(&mut bytes, name.as_bytes(), value.as_bytes())?,
        }
    }
    if !cookies.is_empty() {
        write_header(&mut bytes, b"Cookie", &cookies)?;
    }
    if !is_whole && !head.headers().contains_key("content-length") {
        write_header(&mut bytes, b"Transfer-Encoding", b"chunked")?;
    }
    write_head_end(&mut bytes);
    Ok(bytes)
}

/// Moves the request's body to who serves it.
async fn send_body(pipe: Rc<Pipe>, mut body: RecvStream, is_chunked: bool) {
    while let Some(data) = next_data(&pipe, &mut body).await {
        // A body that was cut has no end.
        let Ok(data) = data else { return };
        let mut piece = Vec::with_capacity(data.len() + 16);
        if is_chunked && !data.is_empty() {
            write_chunk_head(&mut piece, data.len());
        }
        piece.extend_from_slice(&data);
        if is_chunked && !data.is_empty() {
            piece.extend_from_slice(CHUNK_END);
        }
        // More comes only when this is on its way.
        if write(&pipe, &piece).await.is_err() {
            return;
        }
        if body.flow_control().release_capacity(data.len()).is_err() {
            return;
        }
    }
    if is_chunked {
        // Who has answered already needs no end.
        let _ = write(&pipe, LAST_CHUNK).await;
    }
}

/// More of the body, as long as anybody wants it.
async fn next_data(pipe: &Pipe, body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    poll_fn(|context| match pipe.poll_deaf() {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => body.poll_data(context),
    })
    .await
}

async fn write(pipe: &Pipe, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        poll_fn(|_| pipe.poll_writable()).await;
        let written = pipe.try_write(&[IoSlice::new(bytes)])?;
        bytes = &bytes[written.unwrap_or(0)..];
    }
    Ok(())
}

/// What comes back.
struct Answer {
    pipe: Rc<Pipe>,
    input: Vec<u8>,
    method: Method,
    pace: Pace,
    common: Rc<Common>,
    held: Held,
}

impl Answer {
    async fn relay(&mut self, respond: &mut SendResponse<Bytes>) -> Result<(), Broken> {
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
                        return Err(Broken(Reason::INTERNAL_ERROR));
                    }
                }
                Err(_) => return Err(Broken(Reason::INTERNAL_ERROR)),
            }
        }
    }

    fn head(&self, parser: &ResponseParser) -> (Response<()>, ResponseBody) {
        let mut head = Response::new(());
        *head.status_mut() = http::StatusCode::from_u16(parser.status()).unwrap_or_default();
        for (name, value) in parser.headers(&self.input) {
            // Of the connection, not of the answer (RFC 9113 8.2.2).
            let is_own = [&b"connection"[..], b"keep-alive", b"transfer-encoding", b"upgrade"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own));
            let name = http::HeaderName::from_bytes(name);
            let value = http::HeaderValue::from_bytes(value);
            if let (Ok(name), Ok(value), false) = (name, value, is_own) {
                head.headers_mut().append(name, value);
            }
        }
        (head, parser.body(self.method))
    }

    async fn finish(
        &mut self,
        respond: &mut SendResponse<Bytes>,
        head: Response<()>,
        body: ResponseBody,
    ) -> Result<(), Broken> {
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
    ) -> Result<(), Broken> {
        loop {
            let data = std::mem::take(&mut self.input);
            left = left.checked_sub(data.len() as u64).ok_or(Broken(Reason::INTERNAL_ERROR))?;
            self.send(stream, data, left == 0).await?;
            if left == 0 {
                return Ok(());
            }
            if self.read(|context| stream.poll_reset(context)).await? == 0 {
                return Err(Broken(Reason::INTERNAL_ERROR));
            }
        }
    }

    async fn send_chunks(&mut self, stream: &mut SendStream<Bytes>) -> Result<(), Broken> {
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
                    Err(_) => return Err(Broken(Reason::INTERNAL_ERROR)),
                }
            };
            self.send(stream, data, is_over).await?;
            if is_over {
                return Ok(());
            }
            if self.read(|context| stream.poll_reset(context)).await? == 0 {
                return Err(Broken(Reason::INTERNAL_ERROR));
            }
        }
    }

    async fn send_rest(&mut self, stream: &mut SendStream<Bytes>) -> Result<(), Broken> {
        loop {
            let data = std::mem::take(&mut self.input);
            self.send(stream, data, false).await?;
            if self.read(|context| stream.poll_reset(context)).await? == 0 {
                return self.send(stream, Vec::new(), true).await;
            }
        }
    }

    /// Reads on, unless the client wants no more; 0 at the end.
    async fn read(
        &mut self,
        mut poll_reset: impl FnMut(&mut std::task::Context<'_>) -> Poll<Result<Reason, h2::Error>>,
    ) -> Result<usize, Broken> {
        let Self { pipe, input, .. } = self;
        // What was read before has been sent, or is the beginning of a head.
        pipe.release();
        poll_fn(|context| {
            if poll_reset(context).is_ready() {
                return Poll::Ready(Err(Broken(Reason::CANCEL)));
            }
            ready!(pipe.poll_readable());
            Poll::Ready(Ok(pipe.try_read(input).unwrap_or(0)))
        })
        .await
    }

    /// Sends all, as the client's windows and the socket allow, as long as they do in time.
    async fn send(
        &mut self,
        stream: &mut SendStream<Bytes>,
        data: Vec<u8>,
        is_last: bool,
    ) -> Result<(), Broken> {
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
            let count = granted.ok_or(Broken(Reason::CANCEL))??;
            self.pace.count(count);
            let piece = data.split_to(count.min(data.len()));
            self.common.sending.hand(piece.len());
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

    /// Waits while more waits for the socket than may, as long as it takes something in time.
    async fn room(&self, stream: &mut SendStream<Bytes>) -> Result<(), Broken> {
        let (sending, server) = (&self.common.sending, &self.common.server);
        let timeout_ms = server.limits().write_timeout_ms;
        loop {
            let room = poll_fn(|context| match stream.poll_reset(context).is_ready() {
                true => Poll::Ready(Err(Broken(Reason::CANCEL))),
                false => sending.poll_room().map(Ok),
            });
            let until_ms = now_ms().max(sending.moved_ms()) + timeout_ms;
            match with_deadline(until_ms, room).await {
                Ok(room) => return room,
                Err(_) if sending.moved_ms() + timeout_ms > now_ms() => {}
                Err(_) => return Err(Broken(Reason::CANCEL)),
            }
        }
    }

    /// The client takes what it is sent: more may wait for it, here and before, if there is memory.
    fn widen(&mut self) {
        let by_bytes = self.pipe.widening_bytes();
        if by_bytes > 0 && self.held.try_grow(2 * by_bytes) {
            self.pipe.widen(by_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_host() {
        for (authority, hosts, expected) in [
            ("https://a.test/", &[][..], Some("a.test")),
            ("https://a.test/", &["a.test"], Some("a.test")),
            ("https://a.test/", &["A.TEST:443"], Some("a.test")),
            ("https://a.test:8443/", &["a.test:8443"], Some("a.test:8443")),
            ("https://a.test:8443/", &["a.test"], None),
            ("https://a.test/", &["b.test"], None),
            ("https://a.test/", &[""], None),
            ("https://a.test/", &["a.test", "a.test"], None),
            ("/", &["a.test"], Some("a.test")),
            ("/", &["a.test", "a.test"], None),
            ("/", &["a.test", "b.test"], None),
            ("/", &[], Some("")),
        ] {
            let request = Request::get(authority);
            let head = hosts.iter().fold(request, |head, host| head.header("host", *host));
            let head = head.body(()).unwrap();
            let found = host(&head);
            assert_eq!(found, expected.map(str::as_bytes), "{authority} {hosts:?}");
        }
    }
}
