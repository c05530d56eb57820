//! [`ResponseHead`]: the response head of PHP or of an upstream, filtered for a client.
//!
//! Read when a head arrives. The sender is not trusted: invalid header lines are refused.
//! Hop-by-hop fields (RFC 9110 7.6.1) and the message framing are set by the gateway and removed
//! here, as are headers for the gateway itself (`X-Sendfile`, `X-Accel-*`).

use outboard_http_server::{Framing, HeadFacts, HeaderBlock, RequestFacts};
use outboard_http1::{ChunkLimits, is_forbidden_trailer};
use outboard_ring::response::{ResponseHead as RingHead, Trailers};

/// Lines with more memory are freed after their request.
const MAX_REUSED_BYTES: usize = 8 << 10;

/// See the module.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) reason: Vec<u8>,
    pub(crate) headers: HeaderBlock,
    /// `Content-Length`, if it is a number.
    pub(crate) content_length: Option<u64>,
    /// A file that the gateway sends instead of the body.
    pub(crate) sendfile: Option<SendfileOrder>,
    /// Whether the script used a session (`X-Outboard-Session`, from the host).
    pub(crate) used_session: bool,
    /// Whether `X-Accel-Expires` forbids caches to store it.
    pub(crate) expires_at_once: bool,
    pub(crate) has_date: bool,
    pub(crate) has_server: bool,
}

/// The file to send instead of PHP's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendfileOrder {
    /// `X-Sendfile`: an absolute path on disk.
    Disk(Vec<u8>),
    /// `X-Accel-Redirect`: a path below a configured prefix.
    Accel(Vec<u8>),
}

/// The head is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadHead {
    pub(crate) text: String,
}

impl ResponseHead {
    /// Reads the payload of a `Head` frame.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, BadHead> {
        let mut head = Self::default();
        head.refill(payload)?;
        Ok(head)
    }

    /// The same in the memory of an earlier head, which was cleared.
    pub(crate) fn refill(&mut self, payload: &[u8]) -> Result<(), BadHead> {
        let frame =
            RingHead::decode(payload).map_err(|corrupt| BadHead { text: corrupt.to_string() })?;
        if !(200..=999).contains(&frame.status) {
            return Err(BadHead { text: format!("status {} is not a final status", frame.status) });
        }
        self.status = frame.status;
        self.reason.extend_from_slice(frame.reason);
        frame.lines().try_for_each(|line| self.add_line(line))
    }

    /// Removes everything; the memory of an ordinary head remains.
    pub(crate) fn clear(&mut self) {
        let Self { mut reason, mut headers, .. } = std::mem::take(self);
        reason.clear();
        headers.clear();
        if headers.bytes.capacity() <= MAX_REUSED_BYTES {
            *self = Self { reason, headers, ..Self::default() };
        }
    }

    /// Reads the payload of an `Interim` frame. `None` if it cannot be relayed: the gateway itself
    /// sends 100, and PHP cannot switch protocols (101).
    pub(crate) fn read_interim(payload: &[u8]) -> Option<Self> {
        let frame = RingHead::decode(payload).ok()?;
        let mut head = Self { status: frame.status, ..Self::default() };
        if !(102..=199).contains(&frame.status) {
            return None;
        }
        frame.lines().try_for_each(|line| head.add_line(line)).ok()?;
        Some(head)
    }

    /// Reads the payload of a `Trailers` frame. Fields that may not be trailers are removed; clients refuse
    /// more than the limits of [`ChunkLimits`].
    pub(crate) fn read_trailers(payload: &[u8]) -> Result<HeaderBlock, BadHead> {
        let frame =
            Trailers::decode(payload).map_err(|corrupt| BadHead { text: corrupt.to_string() })?;
        let limits = ChunkLimits::default();
        let mut head = Self::default();
        for (number, line) in frame.lines().enumerate() {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            if !is_forbidden_trailer(name.trim_ascii_end()) {
                head.add_line(line)?;
            }
            if number >= limits.trailer_count || head.headers.bytes.len() + 2 > limits.trailer_bytes
            {
                let ChunkLimits { trailer_bytes, trailer_count, .. } = limits;
                let text = format!(
                    "the trailers of a response exceed {trailer_count} fields or {trailer_bytes} bytes: \
                     none is sent"
                );
                return Err(BadHead { text });
            }
        }
        Ok(head.headers)
    }

    /// The facts for writing the head in addition to these lines.
    pub(crate) fn facts(&self, request: RequestFacts, framing: Framing) -> HeadFacts<'_> {
        HeadFacts {
            reason: &self.reason,
            own_date: self.has_date,
            own_server: self.has_server || self.headers.owns_server,
            ..request.head(self.status, framing)
        }
    }

    /// Reads the head of an upstream's response: lines `Name: value`, each ended by a newline.
    pub(crate) fn of_upstream(status: u16, lines: &[u8]) -> Result<Self, BadHead> {
        let mut head = Self { status, ..Self::default() };
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            head.add_line(line)?;
        }
        // Only PHP may set these.
        head.sendfile = None;
        head.used_session = false;
        // RFC 9110 7.6.3.
        head.pass(b"Via", b"1.1 outboard", b"")?;
        Ok(head)
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), BadHead> {
        let Some(colon) = memchr::memchr(b':', line) else {
            return Err(bad_line(line));
        };
        let (name, value) = (line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii());
        match field(name) {
            Field::Dropped => Ok(()),
            Field::ContentLength => {
                self.content_length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                Ok(())
            }
            Field::Sendfile => {
                self.sendfile = Some(SendfileOrder::Disk(value.to_vec()));
                Ok(())
            }
            Field::AccelRedirect => {
                self.sendfile = Some(SendfileOrder::Accel(value.to_vec()));
                Ok(())
            }
            Field::AccelExpires => {
                // A negative number, or a time in the past as `@0`.
                self.expires_at_once = matches!(value, b"0" | b"off" | b"@0" | [b'-', ..]);
                Ok(())
            }
            Field::Session => {
                self.used_session = true;
                Ok(())
            }
            Field::Date => {
                self.has_date = true;
                self.pass(name, value, line)
            }
            Field::Server => {
                self.has_server = true;
                self.pass(name, value, line)
            }
            Field::Other => self.pass(name, value, line),
        }
    }

    fn pass(&mut self, name: &[u8], value: &[u8], line: &[u8]) -> Result<(), BadHead> {
        self.headers.add(name, value).map_err(|_| bad_line(line))
    }
}

fn bad_line(line: &[u8]) -> BadHead {
    BadHead { text: format!("not a header: {}", line.escape_ascii()) }
}

enum Field {
    Dropped,
    ContentLength,
    Sendfile,
    AccelRedirect,
    AccelExpires,
    Session,
    Date,
    Server,
    Other,
}

fn field(name: &[u8]) -> Field {
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    // The length distinguishes most names.
    match name.len() {
        4 if is(b"date") => Field::Date,
        6 if is(b"server") => Field::Server,
        7 if is(b"trailer") || is(b"upgrade") => Field::Dropped,
        10 if is(b"connection") || is(b"keep-alive") => Field::Dropped,
        10 if is(b"x-sendfile") => Field::Sendfile,
        14 if is(b"content-length") => Field::ContentLength,
        16 if is(b"x-accel-redirect") => Field::AccelRedirect,
        15 if is(b"x-accel-charset") => Field::Dropped,
        15 if is(b"x-accel-expires") => Field::AccelExpires,
        17 if is(b"x-accel-buffering") || is(b"transfer-encoding") => Field::Dropped,
        18 if is(b"x-accel-limit-rate") => Field::Dropped,
        18 if is(b"x-outboard-session") => Field::Session,
        _ => Field::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&[u8]]) -> Result<ResponseHead, BadHead> {
        let mut payload = Vec::new();
        RingHead::encode_status(&mut payload, 200, b"");
        for line in lines {
            RingHead::encode_line(&mut payload, line);
        }
        ResponseHead::read(&payload)
    }

    #[test]
    fn framing_and_hop_by_hop_fields_are_removed() {
        let head = read(&[
            b"X-Powered-By: PHP/8.2",
            b"Transfer-Encoding: chunked",
            b"Connection: close",
            b"Content-Length: 12",
            b"Set-Cookie: a=1",
            b"Set-Cookie: b=2",
        ])
        .unwrap();
        assert_eq!(head.content_length, Some(12));
        let expected = b"X-Powered-By: PHP/8.2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n";
        assert_eq!(head.headers.bytes, expected);
    }

    #[test]
    fn headers_for_the_gateway_are_removed() {
        let head = read(&[b"X-Accel-Redirect: /files/a.pdf", b"X-Accel-Buffering: no"]).unwrap();
        assert_eq!(head.sendfile, Some(SendfileOrder::Accel(b"/files/a.pdf".to_vec())));
        assert!(head.headers.bytes.is_empty());
    }

    #[test]
    fn the_session_header_of_the_host_is_removed() {
        let head = read(&[b"X-Outboard-Session: 1", b"X: 1"]).unwrap();
        assert!(head.used_session);
        assert_eq!(head.headers.bytes, b"X: 1\r\n");
    }

    #[test]
    fn invalid_header_lines_are_refused() {
        for line in [&b"no colon"[..], b": no name", b"Bad Name: x", b"X: a\rb", b"X: a\nb"] {
            assert!(read(&[line]).is_err(), "{}", line.escape_ascii());
        }
        let mut payload = Vec::new();
        RingHead::encode_status(&mut payload, 101, b"");
        assert!(ResponseHead::read(&payload).is_err());
    }

    #[test]
    fn trailers_are_filtered_and_bounded() {
        let read = |lines: &[&[u8]]| {
            let mut payload = Vec::new();
            lines.iter().for_each(|line| RingHead::encode_line(&mut payload, line));
            ResponseHead::read_trailers(&payload).map(|block| block.bytes)
        };
        let lines: &[&[u8]] =
            &[b"grpc-status: 0", b"Content-Length : 3", b"TE: x", b"X-Sendfile: /etc"];
        assert_eq!(read(lines), Ok(b"grpc-status: 0\r\n".to_vec()));
        assert!(read(&[b"X: a\nb"]).is_err() && read(&[b"no colon"]).is_err());
        assert!(read(&[&b"X: 1"[..]; 32]).is_ok() && read(&[&b"X: 1"[..]; 33]).is_err());
        assert!(read(&[&[&b"X: "[..], &[b'a'; 9000]].concat()]).is_err());
        assert!(ResponseHead::read_trailers(&[9, 0, 0, 0, 1]).is_err());
    }

    #[test]
    fn only_interim_statuses_make_an_interim_head() {
        let interim = |status, line: &[u8]| {
            let mut payload = Vec::new();
            RingHead::encode_status(&mut payload, status, b"");
            RingHead::encode_line(&mut payload, line);
            ResponseHead::read_interim(&payload).map(|head| (head.status, head.headers.bytes))
        };
        let link = b"Link: </a.css>; rel=preload";
        assert_eq!(interim(103, link), Some((103, [&link[..], b"\r\n"].concat())));
        assert_eq!(interim(103, b"Content-Length: 1"), Some((103, Vec::new())));
        for status in [99, 100, 101, 200] {
            assert_eq!(interim(status, link), None, "{status}");
        }
        assert_eq!(interim(103, b"X: a\nb"), None);
    }
}
