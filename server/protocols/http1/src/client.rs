//! [`Client`]: a blocking HTTP/1.1 client that sends one request after the other.
//!
//! For checks and for the admin socket, not for load. The body of a response is read as a stream,
//! and the next request can be sent once it has been read to its end.

use crate::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, Method, ResponseBody,
    ResponseParser,
};
use std::io::{self, Read, Write};

/// A connection.
#[derive(Debug)]
pub struct Client<S> {
    stream: S,
    /// Bytes that were received and not yet used.
    input: Vec<u8>,
}

/// The head of a response.
#[derive(Debug)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The head as it was received.
    pub bytes: Vec<u8>,
}

impl<S: Read + Write> Client<S> {
    /// A client of a stream that is connected.
    pub fn new(stream: S) -> Self {
        Self { stream, input: Vec::new() }
    }

    /// The stream, to set timeouts on.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream, once all responses have been read.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Sends the parts of a request and reads the head of its final response. `method` is that of
    /// the request.
    ///
    /// # Errors
    /// `InvalidData` for what is no HTTP response, `UnexpectedEof` for an early end.
    pub fn send(&mut self, parts: &[&[u8]], method: Method) -> io::Result<(Head, Body<'_, S>)> {
        parts.iter().try_for_each(|part| self.stream.write_all(part))?;
        let mut parser = ResponseParser::new();
        let head_len = loop {
            match parser.parse(&self.input, &HeadLimits::default()) {
                Ok(HeadStatus::Complete { head_len }) if parser.is_interim() => {
                    self.input.drain(..head_len);
                    parser.reset();
                }
                Ok(HeadStatus::Complete { head_len }) => break head_len,
                Ok(HeadStatus::Partial) => {
                    if self.read_more()? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        };
        let head = Head { status: parser.status(), bytes: self.input.drain(..head_len).collect() };
        let rest = match parser.body(method) {
            ResponseBody::None => Rest::Bytes(0),
            ResponseBody::Length(length) => Rest::Bytes(length),
            ResponseBody::Chunked => {
                Rest::Chunks(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
            }
            ResponseBody::UntilClose => Rest::UntilClose,
        };
        Ok((head, Body { client: self, rest }))
    }

    fn read_more(&mut self) -> io::Result<usize> {
        let mut piece = [0; 64 << 10];
        let count = self.stream.read(&mut piece)?;
        self.input.extend_from_slice(&piece[..count]);
        Ok(count)
    }
}

/// The body of a response, without chunk framing.
#[derive(Debug)]
pub struct Body<'c, S> {
    client: &'c mut Client<S>,
    rest: Rest,
}

/// The part of the body that has not been read.
#[derive(Debug)]
enum Rest {
    Bytes(u64),
    Chunks(Box<ChunkedDecoder>),
    UntilClose,
}

impl<S: Read + Write> Read for Body<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = &mut self.client.input;
            let most = out.len().min(input.len());
            match &mut self.rest {
                Rest::Bytes(0) => return Ok(0),
                Rest::Chunks(decoder) => {
                    let chunk = decoder.decode(&input[..most]);
                    match chunk.map_err(|_| io::ErrorKind::InvalidData)? {
                        Chunk::Data { range } => {
                            let count = range.len();
                            out[..count].copy_from_slice(&input[range.clone()]);
                            input.drain(..range.end);
                            return Ok(count);
                        }
                        Chunk::End { consumed } => {
                            input.drain(..consumed);
                            self.rest = Rest::Bytes(0);
                            return Ok(0);
                        }
                        Chunk::NeedMore => {
                            input.drain(..most);
                        }
                    }
                }
                Rest::Bytes(_) | Rest::UntilClose if most > 0 => {
                    let left = if let Rest::Bytes(left) = self.rest { left } else { u64::MAX };
                    let count = most.min(usize::try_from(left).unwrap_or(usize::MAX));
                    out[..count].copy_from_slice(&input[..count]);
                    input.drain(..count);
                    if let Rest::Bytes(left) = &mut self.rest {
                        *left -= count as u64;
                    }
                    return Ok(count);
                }
                Rest::Bytes(_) | Rest::UntilClose => {}
            }
            if self.client.input.is_empty() && self.client.read_more()? == 0 {
                return match self.rest {
                    Rest::UntilClose => Ok(0),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A stream that delivers a response byte by byte and drops the request.
    struct Script(Cursor<Vec<u8>>);

    impl Read for Script {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut out[..1])
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn exchange(response: &str) -> io::Result<(u16, String)> {
        let mut client = Client::new(Script(Cursor::new(response.into())));
        let (head, mut body) = client.send(&[b"GET / HTTP/1.1\r\n\r\n"], Method::Get)?;
        let mut text = String::new();
        body.read_to_string(&mut text)?;
        Ok((head.status, text))
    }

    #[test]
    fn every_framing_gives_the_body_alone() {
        for (response, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", "ok"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok"),
            ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.0 200 OK\r\n\r\nok", "ok"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        ] {
            assert_eq!(exchange(response).expect("it is whole"), (200, body.to_owned()));
        }
        let empty = exchange("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(empty.expect("a 304 has no body"), (304, String::new()));
    }

    #[test]
    fn a_close_in_the_middle_is_an_error() {
        for response in [
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
            "HTTP/1.1 200",
        ] {
            let error = exchange(response).expect_err("it is not whole");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{response}");
        }
        let error = exchange("SSH-2.0-OpenSSH\r\n\r\n").expect_err("no HTTP");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
