//! The payload of a `Request` frame: the data of the CGI variables.
//!
//! Encoded by the gateway with [`encode`]. The host copies the frame out of the ring, validates it
//! once with [`RequestView::decode`], and points PHP at its copy. Every string ends with a NUL that
//! is not part of it, so that C can use it in place.
//!
//! ```text
//!  Fixed (40 bytes) │ u32 length × FIELD_COUNT │ field\0 … │ headers │ params
//!  header, param:  u32 name length │ u32 value length │ name\0 │ value\0
//! ```

use crate::corrupt::Corrupt;

/// The strings that every request has; empty when it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// As received, e.g. `POST`.
    Method = 0,
    /// The request target as received (`REQUEST_URI`).
    Uri,
    /// Without the question mark (`QUERY_STRING`).
    Query,
    /// Absolute path of the script (`SCRIPT_FILENAME`).
    ScriptFilename,
    /// Its path below the document root (`SCRIPT_NAME`).
    ScriptName,
    /// The path after the script (`PATH_INFO`).
    PathInfo,
    /// `DOCUMENT_ROOT`, absolute.
    DocumentRoot,
    /// The normalised path, nginx's `$document_uri` (`DOCUMENT_URI`).
    DocumentUri,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    Protocol,
    /// `CONTENT_TYPE`.
    ContentType,
    /// `REMOTE_ADDR`.
    RemoteAddr,
    /// `SERVER_ADDR`.
    ServerAddr,
    /// `SERVER_NAME`.
    ServerName,
    /// `http` or `https` (`REQUEST_SCHEME`).
    Scheme,
    /// The request id of the logs, also `REQUEST_ID`.
    RequestId,
}

/// Number of [`Field`]s.
pub const FIELD_COUNT: usize = 15;
const FIXED_BYTES: usize = 40;
const LENGTHS_BYTES: usize = 4 * FIELD_COUNT;

/// How [`Field::RequestId`] is written: sixteen hexadecimal digits.
pub fn request_id_text(id: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|at| DIGITS[(id >> (60 - 4 * at)) as usize & 15])
}

/// What the gateway takes of the work of a script, for the trace of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum TraceDetail {
    /// Nothing: the request is not traced, or will not be exported.
    #[default]
    None = 0,
    /// Spans.
    Spans,
    /// Spans with the text of database statements.
    Statements,
}

impl TraceDetail {
    fn of(raw: u8) -> Self {
        match raw {
            1 => Self::Spans,
            2 => Self::Statements,
            _ => Self::None,
        }
    }
}

/// The numbers of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fixed {
    /// Length of the body that follows in `RequestBody` frames; `None` when the request had
    /// neither a length nor a chunked body.
    pub content_length: Option<u64>,
    /// Wall-clock time of acceptance, µs since the epoch (`REQUEST_TIME_FLOAT`).
    pub received_us: u64,
    /// Whether requests of direct connections with the same host and path are like this one for a while
    /// ([`crate::direct`]).
    pub is_template: bool,
    /// What of the script's work is traced.
    pub trace_detail: TraceDetail,
    /// `REMOTE_PORT`; 0 for Unix sockets.
    pub remote_port: u16,
    /// `SERVER_PORT`; 0 for Unix sockets.
    pub server_port: u16,
    /// Entries of the header list.
    pub header_count: u16,
    /// Entries of the parameter list.
    pub param_count: u16,
}

/// The parts of a request frame.
#[derive(Debug)]
pub struct RequestParts<'a, H, P> {
    /// `content_length`, times and ports; the counts are filled in by [`encode`].
    pub fixed: Fixed,
    /// Indexed by [`Field`].
    pub fields: [&'a [u8]; FIELD_COUNT],
    /// Request headers, names as received.
    pub headers: H,
    /// Further `$_SERVER` entries of the configuration.
    pub params: P,
}

/// Appends the payload of a request frame to `out`.
pub fn encode<'a, H, P>(parts: RequestParts<'a, H, P>, out: &mut Vec<u8>)
where
    H: Iterator<Item = (&'a [u8], &'a [u8])>,
    P: Iterator<Item = (&'a [u8], &'a [u8])>,
{
    let start = out.len();
    encode_fields(&parts.fields, out);
    let header_count = encode_pairs(parts.headers, out);
    let param_count = encode_pairs(parts.params, out);
    let fixed = Fixed { header_count, param_count, ..parts.fixed };
    out[start..start + FIXED_BYTES].copy_from_slice(&fixed.encode());
}

/// Appends room for [`Fixed`], and the fields. One change of the vector's length for all of them: most are
/// short or empty, so that checks of its capacity would cost more than the copies.
fn encode_fields(fields: &[&[u8]; FIELD_COUNT], out: &mut Vec<u8>) {
    let start = out.len();
    let strings_bytes: usize = fields.iter().map(|field| field.len() + 1).sum();
    out.resize(start + FIXED_BYTES + LENGTHS_BYTES + strings_bytes, 0);
    let (lengths, mut strings) = out[start + FIXED_BYTES..].split_at_mut(LENGTHS_BYTES);
    for (length, field) in lengths.chunks_exact_mut(4).zip(fields) {
        length.copy_from_slice(&(field.len() as u32).to_le_bytes());
        let (string, rest) = strings.split_at_mut(field.len() + 1);
        if !field.is_empty() {
            string[..field.len()].copy_from_slice(field);
        }
        strings = rest;
    }
}

fn encode_pairs<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) -> u16 {
    let mut count = 0;
    for (name, value) in pairs {
        out.reserve(8 + name.len() + 1 + value.len() + 1);
        out.extend_from_slice(&(name.len() as u32).to_le_bytes());
        out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(value);
        out.push(0);
        count += 1;
    }
    count
}

impl Fixed {
    fn encode(&self) -> [u8; FIXED_BYTES] {
        let mut raw = [0; FIXED_BYTES];
        raw[0] = u8::from(self.content_length.is_some());
        raw[1] = self.trace_detail as u8;
        raw[2] = u8::from(self.is_template);
        raw[8..16].copy_from_slice(&self.content_length.unwrap_or(0).to_le_bytes());
        raw[16..24].copy_from_slice(&self.received_us.to_le_bytes());
        raw[24..26].copy_from_slice(&self.remote_port.to_le_bytes());
        raw[26..28].copy_from_slice(&self.server_port.to_le_bytes());
        raw[28..30].copy_from_slice(&self.header_count.to_le_bytes());
        raw[30..32].copy_from_slice(&self.param_count.to_le_bytes());
        raw
    }

    fn decode(raw: &[u8]) -> Self {
        let short = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
        let long = |at: usize| {
            u64::from_le_bytes(raw[at..at + 8].try_into().expect("eight bytes were sliced"))
        };
        Self {
            content_length: (raw[0] != 0).then(|| long(8)),
            received_us: long(16),
            is_template: raw[2] == 1,
            trace_detail: TraceDetail::of(raw[1]),
            remote_port: short(24),
            server_port: short(26),
            header_count: short(28),
            param_count: short(30),
        }
    }
}

/// A validated request over the host's own copy of the frame.
#[derive(Debug, Clone)]
pub struct RequestView<'a> {
    /// The numbers.
    pub fixed: Fixed,
    fields: [&'a [u8]; FIELD_COUNT],
    headers: &'a [u8],
    params: &'a [u8],
}

impl<'a> RequestView<'a> {
    /// Checks every length of `payload`.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of the payload or a NUL is not where it must be.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = payload;
        let fixed = Fixed::decode(take(&mut rest, FIXED_BYTES)?);
        let mut lengths = [0; FIELD_COUNT];
        for length in &mut lengths {
            *length = take_u32(&mut rest)? as usize;
        }
        let mut fields: [&[u8]; FIELD_COUNT] = [&[]; FIELD_COUNT];
        for (field, length) in fields.iter_mut().zip(lengths) {
            *field = take_string(&mut rest, length)?;
        }
        let headers = rest;
        skip_pairs(&mut rest, fixed.header_count)?;
        let params = rest;
        skip_pairs(&mut rest, fixed.param_count)?;
        if !rest.is_empty() {
            return Err(Corrupt { what: "a request frame has bytes after its end" });
        }
        Ok(Self { fixed, fields, headers, params })
    }

    /// One of the strings; the byte after it is NUL.
    pub fn field(&self, field: Field) -> &'a [u8] {
        self.fields[field as usize]
    }

    /// All of the strings, by [`Field`].
    pub fn fields(&self) -> [&'a [u8]; FIELD_COUNT] {
        self.fields
    }

    /// The request headers, names as received; the byte after each string is NUL.
    pub fn headers(&self) -> Pairs<'a> {
        Pairs { rest: self.headers, left: self.fixed.header_count }
    }

    /// The configuration's `$_SERVER` entries; the byte after each string is NUL.
    pub fn params(&self) -> Pairs<'a> {
        Pairs { rest: self.params, left: self.fixed.param_count }
    }
}

/// One string of a frame that this process encoded, without validation.
pub fn peek(payload: &[u8], field: Field) -> Option<&[u8]> {
    let mut rest = payload.get(FIXED_BYTES..)?;
    let mut at = FIXED_BYTES + LENGTHS_BYTES;
    for _ in 0..field as usize {
        at += take_u32(&mut rest).ok()? as usize + 1;
    }
    let length = take_u32(&mut rest).ok()? as usize;
    payload.get(at..at + length)
}

/// Iterates over validated name and value pairs.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        take_pair(&mut self.rest).ok()
    }
}

const TRUNCATED: Corrupt = Corrupt { what: "a request frame is shorter than its lengths say" };

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Corrupt> {
    let (head, tail) = rest.split_at_checked(len).ok_or(TRUNCATED)?;
    *rest = tail;
    Ok(head)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, Corrupt> {
    let raw = take(rest, 4)?;
    Ok(u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]))
}

fn take_string<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Corrupt> {
    let terminated = take(rest, len.checked_add(1).ok_or(TRUNCATED)?)?;
    match terminated.split_last() {
        Some((0, string)) => Ok(string),
        _ => Err(Corrupt { what: "a string of a request frame does not end with NUL" }),
    }
}

fn take_pair<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Corrupt> {
    let name_len = take_u32(rest)? as usize;
    let value_len = take_u32(rest)? as usize;
    Ok((take_string(rest, name_len)?, take_string(rest, value_len)?))
}

fn skip_pairs(rest: &mut &[u8], count: u16) -> Result<(), Corrupt> {
    for _ in 0..count {
        take_pair(rest)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
