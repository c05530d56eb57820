//! Payloads from a worker: response head, trailers, end of request, log line.
//!
//! The host encodes, the gateway decodes its own copy. Invariant: decoding checks every length, so
//! all lines can be read afterwards. The gateway decides later which header lines reach the client.

use crate::corrupt::Corrupt;

const TRUNCATED: Corrupt = Corrupt { what: "a response frame is shorter than its lengths say" };

/// Payload of a `Head` frame: `u16 status │ u16 reason length │ reason │ (u32 length │ line)*`.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    /// Status code as PHP gave it.
    pub status: u16,
    /// Reason phrase when the script set a status line of its own; empty otherwise.
    pub reason: &'a [u8],
    lines: &'a [u8],
}

impl<'a> ResponseHead<'a> {
    /// Begins a payload in `out`; follow with [`ResponseHead::encode_line`].
    pub fn encode_status(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
        let reason = &reason[..reason.len().min(usize::from(u16::MAX))];
        out.extend_from_slice(&status.to_le_bytes());
        out.extend_from_slice(&(reason.len() as u16).to_le_bytes());
        out.extend_from_slice(reason);
    }

    /// Appends a line of the form `Name: value`.
    pub fn encode_line(out: &mut Vec<u8>, line: &[u8]) {
        out.extend_from_slice(&(line.len() as u32).to_le_bytes());
        out.extend_from_slice(line);
    }

    /// Checks every length of `payload`.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let (fixed, rest) = payload.split_at_checked(4).ok_or(TRUNCATED)?;
        let status = u16::from_le_bytes([fixed[0], fixed[1]]);
        let reason_len = usize::from(u16::from_le_bytes([fixed[2], fixed[3]]));
        let (reason, lines) = rest.split_at_checked(reason_len).ok_or(TRUNCATED)?;
        check_lines(lines)?;
        Ok(Self { status, reason, lines })
    }

    /// The header lines in the order in which PHP sent them.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        lines_of(self.lines)
    }
}

/// What a header line of a script is for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Of the connection (RFC 9110 7.6.1), or an order to nginx that has no meaning here.
    Dropped,
    /// `Content-Length`.
    ContentLength,
    /// `X-Sendfile`.
    Sendfile,
    /// `X-Accel-Redirect`.
    AccelRedirect,
    /// `X-Accel-Expires`.
    AccelExpires,
    /// From the host: the script has used a session.
    Session,
    /// `Date`.
    Date,
    /// `Server`.
    Server,
    /// For the client.
    Other,
}

impl LineKind {
    /// The kind of a line with this name.
    pub fn of(name: &[u8]) -> Self {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        // The length distinguishes most names.
        match name.len() {
            4 if is(b"date") => Self::Date,
            6 if is(b"server") => Self::Server,
            7 if is(b"trailer") || is(b"upgrade") => Self::Dropped,
            10 if is(b"connection") || is(b"keep-alive") => Self::Dropped,
            10 if is(b"x-sendfile") => Self::Sendfile,
            14 if is(b"content-length") => Self::ContentLength,
            16 if is(b"x-accel-redirect") => Self::AccelRedirect,
            15 if is(b"x-accel-charset") => Self::Dropped,
            15 if is(b"x-accel-expires") => Self::AccelExpires,
            17 if is(b"x-accel-buffering") || is(b"transfer-encoding") => Self::Dropped,
            18 if is(b"x-accel-limit-rate") => Self::Dropped,
            18 if is(b"x-outboard-session") => Self::Session,
            _ => Self::Other,
        }
    }
}

/// Payload of a `Trailers` frame: `(u32 length │ line)*`, as [`ResponseHead::encode_line`] appends them.
#[derive(Debug, Clone, Copy)]
pub struct Trailers<'a>(&'a [u8]);

impl<'a> Trailers<'a> {
    /// Checks every length of `payload`.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        check_lines(payload)?;
        Ok(Self(payload))
    }

    /// The lines in the order in which PHP added them.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        lines_of(self.0)
    }
}

fn check_lines(mut unread: &[u8]) -> Result<(), Corrupt> {
    while !unread.is_empty() {
        take_line(&mut unread).ok_or(TRUNCATED)?;
    }
    Ok(())
}

fn lines_of<'a>(mut rest: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    std::iter::from_fn(move || {
        let line = take_line(&mut rest);
        debug_assert!(line.is_some() || rest.is_empty(), "decoding has checked all lines");
        line
    })
}

fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, tail) = rest.split_at_checked(4)?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    let (line, tail) = tail.split_at_checked(length)?;
    *rest = tail;
    Some(line)
}

/// How a request ended inside PHP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// The script ran to its end or called `exit`.
    Finished = 0,
    /// An uncaught error or exception ended it.
    Failed = 1,
    /// The host could not run it at all (script missing, engine refused to start a request).
    Refused = 2,
}

/// Payload of a `Done` frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// How it ended.
    pub outcome: Outcome,
    /// The worker exits after this request, because its state cannot be trusted.
    pub leaving: bool,
    /// The script has called `Outboard\snapshot()` in classic mode: it could be booted once.
    pub takes_snapshot: bool,
    /// The script has handled the request: the response is what it meant.
    pub handled: bool,
    /// Peak of PHP's heap during the request.
    pub peak_memory_bytes: u64,
}

impl Done {
    /// Size of the encoded form.
    pub const BYTES: usize = 16;

    /// The wire form.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut raw = [0; Self::BYTES];
        raw[0] = self.outcome as u8;
        raw[1] = u8::from(self.leaving);
        raw[2] = u8::from(self.takes_snapshot);
        raw[3] = u8::from(self.handled);
        raw[8..16].copy_from_slice(&self.peak_memory_bytes.to_le_bytes());
        debug_assert_eq!(Self::decode(&raw), Ok(*self));
        raw
    }

    /// Reads the wire form.
    ///
    /// # Errors
    /// [`Corrupt`] when the length or the outcome is impossible.
    pub fn decode(payload: &[u8]) -> Result<Self, Corrupt> {
        let raw: &[u8; Self::BYTES] = payload.try_into().map_err(|_| TRUNCATED)?;
        let outcome = match raw[0] {
            0 => Outcome::Finished,
            1 => Outcome::Failed,
            2 => Outcome::Refused,
            _ => return Err(Corrupt { what: "an unknown outcome" }),
        };
        let peak = raw[8..16].try_into().expect("eight bytes were sliced");
        Ok(Self {
            outcome,
            leaving: raw[1] != 0,
            takes_snapshot: raw[2] != 0,
            handled: raw[3] == 1,
            peak_memory_bytes: u64::from_le_bytes(peak),
        })
    }
}

/// Bytes in front of the head in a `Whole` frame.
pub const WHOLE_PREFIX_BYTES: usize = Done::BYTES + 4;

/// The payload of a `Whole` frame: [`Done`], the length of the head, the head as in a `Head` frame, and the body.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// The end of the request.
    pub done: Done,
    /// The payload of a `Head` frame.
    pub head: &'a [u8],
    /// The body, which may be empty.
    pub body: &'a [u8],
}

impl<'a> Whole<'a> {
    /// What precedes a head of so many bytes.
    pub fn prefix(done: &Done, head_bytes: u32) -> [u8; WHOLE_PREFIX_BYTES] {
        let mut raw = [0; WHOLE_PREFIX_BYTES];
        raw[..Done::BYTES].copy_from_slice(&done.encode());
        raw[Done::BYTES..].copy_from_slice(&head_bytes.to_le_bytes());
        raw
    }

    /// Validates a payload.
    ///
    /// # Errors
    /// [`Corrupt`] if the lengths do not match.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let (done, rest) = payload.split_at_checked(Done::BYTES).ok_or(TRUNCATED)?;
        let (head_bytes, rest) = rest.split_first_chunk().ok_or(TRUNCATED)?;
        let head_bytes = u32::from_le_bytes(*head_bytes) as usize;
        let (head, body) = rest.split_at_checked(head_bytes).ok_or(TRUNCATED)?;
        Ok(Self { done: Done::decode(done)?, head, body })
    }
}

/// Payload of a `Log` frame: `u8 severity │ text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// As in `syslog(3)`: 0 emergency … 7 debug.
    pub severity: u8,
    /// One message, without a newline at its end.
    pub text: &'a [u8],
}

impl<'a> LogLine<'a> {
    /// Reads the wire form.
    ///
    /// # Errors
    /// [`Corrupt`] when it is empty.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let (severity, text) = payload.split_first().ok_or(TRUNCATED)?;
        Ok(Self { severity: (*severity).min(7), text })
    }
}

#[cfg(test)]
mod tests;
