//! FastCGI as a web server speaks it to an application (FastCGI 1.0, Responder).
//!
//! [`write`] writes the records of a request, [`Reader`] parses those of responses: the CGI head
//! (RFC 3875 6) and the body, whose bytes are in records of any size. No I/O. Invariant: the result
//! does not depend on how the bytes are cut.

use crate::message::Message;
use crate::received::Malformed;
use crate::response::Response;

const VERSION: u8 = 1;
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const RESPONDER: u8 = 1;
const KEEP_CONNECTION: u8 = 1;
/// One request at a time, so the id is constant.
const REQUEST_ID: u16 = 1;
const RECORD_BYTES_MAX: usize = 65_528;
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Appends the records of `message` for a script below `document_root`.
pub(crate) fn write(message: &Message, keep_alive: bool, out: &mut Vec<u8>) {
    let flags = if keep_alive { KEEP_CONNECTION } else { 0 };
    record(BEGIN_REQUEST, &[0, RESPONDER, flags, 0, 0, 0, 0, 0], out);
    let mut params = Vec::with_capacity(512);
    for_each_param(message, |name, value| {
        push_length(name.len(), &mut params);
        push_length(value.len(), &mut params);
        params.extend_from_slice(name.as_bytes());
        params.extend_from_slice(value);
    });
    stream(PARAMS, &params, out);
    stream(STDIN, &message.body, out);
}

/// The variables of RFC 3875 4.1 and those that every web server adds.
fn for_each_param(message: &Message, mut param: impl FnMut(&str, &[u8])) {
    let uri = message.path.as_slice();
    let end = uri.iter().position(|&byte| byte == b'?').unwrap_or(uri.len());
    let script = &uri[..end];
    let root = message.document_root.as_bytes();
    let mut file = root.to_vec();
    file.extend_from_slice(script);
    param("GATEWAY_INTERFACE", b"CGI/1.1");
    param("SERVER_PROTOCOL", b"HTTP/1.1");
    param("SERVER_SOFTWARE", b"outboard-bench");
    param("REQUEST_METHOD", message.method.as_bytes());
    param("SCRIPT_FILENAME", &file);
    param("SCRIPT_NAME", script);
    param("DOCUMENT_URI", script);
    param("DOCUMENT_ROOT", root);
    param("REQUEST_URI", uri);
    param("QUERY_STRING", uri.get(end + 1..).unwrap_or_default());
    param("REMOTE_ADDR", b"127.0.0.1");
    param("REMOTE_PORT", b"0");
    param("SERVER_ADDR", b"127.0.0.1");
    param("SERVER_PORT", b"80");
    param("SERVER_NAME", &message.host);
    param("HTTP_HOST", &message.host);
    // php-fpm refuses a request without it if cgi.force_redirect is on.
    param("REDIRECT_STATUS", b"200");
    if message.has_body() {
        param("CONTENT_LENGTH", message.body.len().to_string().as_bytes());
    }
    for (name, value) in message.fields() {
        if name.eq_ignore_ascii_case("content-type") {
            param("CONTENT_TYPE", value);
        } else {
            let name = name.to_ascii_uppercase().replace('-', "_");
            param(&format!("HTTP_{name}"), value);
        }
    }
}

/// A length below 128 is one byte, any other four (FastCGI 3.4).
fn push_length(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short @ 0..=127) => out.push(short),
        _ => out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
    }
}

/// A stream ends with an empty record.
fn stream(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    content.chunks(RECORD_BYTES_MAX).for_each(|piece| record(kind, piece, out));
    record(kind, &[], out);
}

fn record(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    let [length_high, length_low] = (content.len() as u16).to_be_bytes();
    out.extend_from_slice(&[VERSION, kind, id_high, id_low, length_high, length_low, 0, 0]);
    out.extend_from_slice(content);
}

/// Parses the responses of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The received part of the current record header.
    header: [u8; 8],
    header_bytes: usize,
    content_left: usize,
    padding_left: usize,
    /// The received part of the CGI head; `None` once the body has begun.
    head: Option<Vec<u8>>,
    is_over: bool,
}

impl Reader {
    /// Prepares for the response to a new request.
    pub(crate) fn begin(&mut self) {
        *self = Self { head: Some(Vec::new()), ..Self::default() };
    }

    /// Parses received bytes; true when the response is complete.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        response: &mut Response,
    ) -> Result<bool, Malformed> {
        while !bytes.is_empty() {
            if self.is_over && self.padding_left == 0 {
                return Err(Malformed);
            }
            bytes = match (self.content_left, self.padding_left) {
                (0, 0) => self.take_header(bytes)?,
                (0, padding) => {
                    let taken = padding.min(bytes.len());
                    self.padding_left -= taken;
                    &bytes[taken..]
                }
                (content, _) => {
                    let (piece, rest) = bytes.split_at(content.min(bytes.len()));
                    self.content_left -= piece.len();
                    self.take_content(piece, response)?;
                    rest
                }
            };
        }
        Ok(self.is_over && self.padding_left == 0)
    }

    fn take_header<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Malformed> {
        let missing = self.header.len() - self.header_bytes;
        let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header[self.header_bytes..][..piece.len()].copy_from_slice(piece);
        self.header_bytes += piece.len();
        if self.header_bytes == self.header.len() {
            let [version, kind, _, _, high, low, padding, _] = self.header;
            self.header_bytes = 0;
            self.content_left = usize::from(u16::from_be_bytes([high, low]));
            self.padding_left = usize::from(padding);
            let is_known = matches!(kind, STDOUT | STDERR) || kind == END_REQUEST;
            if version != VERSION || !is_known || (kind == END_REQUEST && self.content_left != 8) {
                return Err(Malformed);
            }
        }
        Ok(rest)
    }

    fn take_content(&mut self, piece: &[u8], response: &mut Response) -> Result<(), Malformed> {
        match self.header[1] {
            STDOUT => self.take_output(piece, response),
            END_REQUEST if self.content_left == 0 => {
                self.is_over = true;
                // A head without an end is no response.
                if self.head.is_some() { Err(Malformed) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn take_output(&mut self, piece: &[u8], response: &mut Response) -> Result<(), Malformed> {
        let Some(mut head) = self.head.take() else {
            response.take_body(piece);
            return Ok(());
        };
        let seen = head.len();
        head.extend_from_slice(piece);
        match head_end(&head, seen) {
            Some((end, body)) => {
                read_head(&head[..end], response);
                response.take_body(&head[body..]);
                Ok(())
            }
            None if head.len() > HEAD_BYTES_MAX => Err(Malformed),
            None => {
                self.head = Some(head);
                Ok(())
            }
        }
    }
}

/// The end of the head and the start of the body; before `seen`, only the last three bytes can be
/// part of the end.
fn head_end(bytes: &[u8], seen: usize) -> Option<(usize, usize)> {
    let from = seen.saturating_sub(3);
    let lf = |at: usize| bytes.get(at) == Some(&b'\n');
    memchr::memchr_iter(b'\n', &bytes[from..]).map(|at| from + at).find_map(|at| {
        let is_crlf = bytes.get(at + 1) == Some(&b'\r') && lf(at + 2);
        if lf(at + 1) { Some((at + 1, at + 2)) } else { is_crlf.then_some((at + 1, at + 3)) }
    })
}

/// RFC 3875 6.3: the status is 200 without a `Status` field.
fn read_head(head: &[u8], response: &mut Response) {
    response.status = 200;
    for line in head.split(|&byte| byte == b'\n') {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"status") {
            let digits = std::str::from_utf8(value.get(..3).unwrap_or_default());
            response.status = digits.ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        } else if response.wants_fields {
            response.take_field(name, value);
        }
    }
}

#[cfg(test)]
mod tests;
