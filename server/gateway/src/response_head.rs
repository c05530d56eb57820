//! [`ResponseHead`]: the response head of PHP or of an upstream, filtered for a client.
//!
//! Read when a head arrives. The sender is not trusted: invalid header lines are not sent, and a head in which
//! one could end its line is refused.
//! Hop-by-hop fields (RFC 9110 7.6.1) and the message framing are set by the gateway and removed
//! here, as are headers for the gateway itself (`X-Sendfile`, `X-Accel-*`).

use outboard_http_server::{Framing, HeadFacts, HeaderBlock, RequestFacts};
use outboard_http1::{ChunkLimits, is_forbidden_trailer};
use outboard_ring::response::{LineKind, ResponseHead as RingHead, Trailers};

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
    /// The first line that is not sent because it is invalid, and how many there are.
    pub(crate) dropped: Option<(String, usize)>,
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
    pub(crate) fn read_trailers(payload: &[u8]) -> Result<Self, BadHead> {
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
        Ok(head)
    }

    /// Why lines are not sent, for the log; once.
    pub(crate) fn take_dropped(&mut self) -> Option<String> {
        let (first, count) = self.dropped.take()?;
        let others = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        Some(format!(
            "a header line was not sent because it is not a token, a colon and text: {first}{others}"
        ))
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
        // nginx takes a line without a colon for a name. PHP adds its own Content-Type to such a one.
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default().trim_ascii();
        let name = line[..colon].trim_ascii_end();
        if colon == line.len() && name.eq_ignore_ascii_case(b"content-type") {
            self.drop_line(line);
            return Ok(());
        }
        match LineKind::of(name) {
            LineKind::Dropped => Ok(()),
            LineKind::ContentLength => {
                self.content_length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                Ok(())
            }
            LineKind::Sendfile => {
                self.sendfile = Some(SendfileOrder::Disk(value.to_vec()));
                Ok(())
            }
            LineKind::AccelRedirect => {
                self.sendfile = Some(SendfileOrder::Accel(value.to_vec()));
                Ok(())
            }
            LineKind::AccelExpires => {
                // A negative number, or a time in the past as `@0`.
                self.expires_at_once = matches!(value, b"0" | b"off" | b"@0" | [b'-', ..]);
                Ok(())
            }
            LineKind::Session => {
                self.used_session = true;
                Ok(())
            }
            LineKind::Date => {
                self.has_date = true;
                self.pass(name, value, line)
            }
            LineKind::Server => {
                self.has_server = true;
                self.pass(name, value, line)
            }
            LineKind::Other => self.pass(name, value, line),
        }
    }

    fn pass(&mut self, name: &[u8], value: &[u8], line: &[u8]) -> Result<(), BadHead> {
        if self.headers.add(name, value).is_ok() {
            return Ok(());
        }
        if memchr::memchr3(b'\r', b'\n', b'\0', line).is_some() {
            return Err(BadHead { text: format!("not a header: {}", line.escape_ascii()) });
        }
        self.drop_line(line);
        Ok(())
    }

    fn drop_line(&mut self, line: &[u8]) {
        let dropped = self.dropped.get_or_insert_with(|| (line.escape_ascii().to_string(), 0));
        dropped.1 += 1;
    }
}

#[cfg(test)]
mod tests;
