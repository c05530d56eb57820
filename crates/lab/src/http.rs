//! The least of HTTP/1.1 that a client needs to know where one answer ends (RFC 9112 §6.3),
//! and a blocking exchange of one request for checks and the WordPress installer.
//!
//! [`scan`] is pure, and trusts the server as far as a measuring client may. Load is not sent from
//! here but by [`crate::generator`].

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::ask::Ask;
use crate::error::{Doing, Error, Result};

/// The Host of every request, so that applications answer the same bytes on every port.
pub const HOST: &str = "bench.test";

/// How far a buffer has come towards one whole response.
#[derive(Debug, PartialEq, Eq)]
pub enum Scan {
    /// More bytes are needed.
    Incomplete,
    /// Not an HTTP response.
    Malformed,
    /// One whole response.
    Complete(Shape),
}

/// Where one response lies in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Status code.
    pub status: u16,
    /// Bytes up to and including the empty line.
    pub head: usize,
    /// Bytes of the whole response as sent.
    pub total: usize,
    /// The body is in chunks.
    pub chunked: bool,
    /// The server keeps the connection open.
    pub keep_alive: bool,
}

/// Looks for the end of the response at the start of `buffer`. `ended` says that the peer has
/// closed, which ends a body of unknown length.
pub fn scan(buffer: &[u8], ended: bool) -> Scan {
    let Some(head) = find(buffer, b"\r\n\r\n").map(|at| at + 4) else {
        return if ended { Scan::Malformed } else { Scan::Incomplete };
    };
    let Some(status) = status_of(&buffer[..head]) else { return Scan::Malformed };
    let fields = Fields::read(&buffer[..head]);
    let bodiless = matches!(status, 100..=199 | 204 | 304);
    let length = match fields.length {
        _ if bodiless => Some(0),
        _ if fields.chunked => chunks_end(&buffer[head..]),
        Some(length) => (buffer.len() >= head + length).then_some(length),
        None => ended.then_some(buffer.len() - head),
    };
    match length {
        None if ended => Scan::Malformed,
        None => Scan::Incomplete,
        Some(length) => Scan::Complete(Shape {
            status,
            head,
            total: head + length,
            chunked: fields.chunked && !bodiless,
            keep_alive: !fields.close && !ended,
        }),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn status_of(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok()
}

/// The header fields that decide about framing.
#[derive(Default)]
struct Fields {
    length: Option<usize>,
    chunked: bool,
    close: bool,
}

impl Fields {
    fn read(head: &[u8]) -> Self {
        let mut fields = Self::default();
        for line in head.split(|&byte| byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                fields.length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                fields.chunked = value.eq_ignore_ascii_case(b"chunked");
            } else if name.eq_ignore_ascii_case(b"connection") {
                fields.close = value.eq_ignore_ascii_case(b"close");
            }
        }
        fields
    }
}

/// Bytes up to the end of the last chunk and its (empty) trailer; `None` when not there yet.
fn chunks_end(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (data, size) = chunk(body, at)?;
        at = data + size + 2;
        if size == 0 {
            return (body.len() >= at).then_some(at);
        }
    }
}

/// Where the data of the chunk at `at` begins, and its size.
fn chunk(body: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = find(body.get(at..)?, b"\r\n")?;
    let digits = std::str::from_utf8(&body[at..at + line]).ok()?;
    let digits = digits.split(';').next().unwrap_or_default().trim();
    Some((at + line + 2, usize::from_str_radix(digits, 16).ok()?))
}

/// The data of all chunks of a complete chunked body.
fn join_chunks(raw: &[u8]) -> Vec<u8> {
    let (mut body, mut at) = (Vec::with_capacity(raw.len()), 0);
    while let Some((data, size)) = chunk(raw, at).filter(|&(_, size)| size > 0) {
        body.extend_from_slice(&raw[data..data + size]);
        at = data + size + 2;
    }
    body
}

/// One answer, its body decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// The body without chunk framing.
    pub body: Vec<u8>,
}

impl Answer {
    fn decode(buffer: &[u8], shape: Shape) -> Self {
        let raw = &buffer[shape.head..shape.total];
        let body = if shape.chunked { join_chunks(raw) } else { raw.to_vec() };
        Self { status: shape.status, body }
    }

    /// Where the body first differs from another; `None` when they are equal.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let same = self.body.iter().zip(&other.body).take_while(|(a, b)| a == b).count();
        (self.body != other.body).then_some(same)
    }

    /// The neighbourhood of a place in the body, for an error message.
    pub fn around(&self, at: usize) -> String {
        let range = at.saturating_sub(40)..self.body.len().min(at + 80);
        let text = String::from_utf8_lossy(&self.body[range]).into_owned();
        format!("; around byte {at}: {text:?}")
    }

    /// Status, length and the beginning of the body, for an error message.
    pub fn summary(&self) -> String {
        let start = String::from_utf8_lossy(&self.body[..self.body.len().min(80)]).into_owned();
        format!("{} with {} bytes: {start:?}", self.status, self.body.len())
    }
}

/// Asks for a path on a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// Sends a request on a connection of its own.
pub fn send(address: SocketAddr, ask: &Ask) -> Result<Answer> {
    exchange(address, &ask.clone().header("Connection: close").bytes())
}

/// Sends a request on a connection of its own; the answer and its head as it came.
pub fn send_with_head(address: SocketAddr, ask: &Ask) -> Result<(Answer, String)> {
    exchange_with_head(address, &ask.clone().header("Connection: close").bytes())
}

/// The value of a header field, whatever the case of its name.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// Sends form fields to a path, on a connection of its own.
pub fn post(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Result<Answer> {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", percent_encode(value));
    let body: Vec<String> = fields.iter().map(pair).collect();
    let body = body.join("&");
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
        body.len()
    );
    exchange(address, request.as_bytes())
}

/// Sends a request as it is, on a connection of its own.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Result<Answer> {
    Ok(exchange_with_head(address, request)?.0)
}

fn exchange_with_head(address: SocketAddr, request: &[u8]) -> Result<(Answer, String)> {
    let doing = || format!("ask {address}");
    let mut stream = TcpStream::connect(address).doing(doing)?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).doing(doing)?;
    stream.write_all(request).doing(doing)?;
    let mut buffer = Vec::new();
    stream.read_to_end(&mut buffer).doing(doing)?;
    match scan(&buffer, true) {
        Scan::Complete(shape) => {
            let head = String::from_utf8_lossy(&buffer[..shape.head]).into_owned();
            Ok((Answer::decode(&buffer, shape), head))
        }
        _ => Err(Error::Unexpected {
            who: address.to_string(),
            what: format!("closed after {} bytes without a whole response", buffer.len()),
        }),
    }
}

fn percent_encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(bytes: &[u8], ended: bool) -> Shape {
        match scan(bytes, ended) {
            Scan::Complete(shape) => shape,
            other => panic!("expected a whole response, got {other:?}"),
        }
    }

    #[test]
    fn a_length_ends_the_body_before_the_next_response() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\nokHTTP/1.1";
        let shape = complete(bytes, false);
        assert_eq!((shape.status, shape.total - shape.head, shape.keep_alive), (200, 2, true));
    }

    #[test]
    fn chunks_end_with_the_empty_chunk_only() {
        let whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        for cut in 1..whole.len() {
            assert_eq!(scan(&whole[..cut], false), Scan::Incomplete, "cut at {cut}");
        }
        assert_eq!(Answer::decode(whole, complete(whole, false)).body, b"ok");
    }

    #[test]
    fn a_close_in_the_middle_is_a_failure() {
        assert_eq!(scan(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", true), Scan::Malformed);
        assert_eq!(scan(b"HTTP/1.1 200", true), Scan::Malformed);
    }

    #[test]
    fn a_close_ends_a_body_of_unknown_length() {
        let shape = complete(b"HTTP/1.0 502 Bad Gateway\r\nConnection: close\r\n\r\nno", true);
        assert_eq!((shape.status, shape.keep_alive), (502, false));
    }

    #[test]
    fn a_304_has_no_body_whatever_its_length_says() {
        let bytes = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(complete(bytes, false).total, bytes.len());
    }
}
