//! Writes the head of a message (RFC 9112 4 and 5; requests too, for clients).
//!
//! Called by the gateway for every response and by clients for every request. Invariant: no name or
//! value of an application can end a line: such a one is refused and leaves the output unchanged.

use std::fmt;

use crate::scan;
use crate::status;

/// Which part of a header must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InvalidHeader {
    /// The name is not a token (RFC 9110 5.1).
    Name,
    /// The value contains CR, LF, NUL or another control byte but HTAB (RFC 9110 5.5).
    Value,
    /// The reason phrase contains one.
    Reason,
    /// The status code is not 100 to 999.
    Status,
    /// The method is not a token, or the target is empty or contains a byte that would end it.
    RequestLine,
}

impl fmt::Display for InvalidHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "header name is not a token",
            Self::Value => "header value holds a control byte",
            Self::Reason => "reason phrase holds a control byte",
            Self::Status => "status code is not 100 to 999",
            Self::RequestLine => "method or request target cannot stand in a request line",
        })
    }
}

impl std::error::Error for InvalidHeader {}

/// Writes `HTTP/1.1 status reason CRLF` with the standard reason phrase.
///
/// A code outside 100 to 999 cannot be sent and becomes 500.
///
/// # Examples
///
/// ```
/// use outboard_http1::{
///     InvalidHeader, write_content_length, write_head_end, write_header, write_status_line,
/// };
///
/// let mut head = Vec::new();
/// write_status_line(&mut head, 404);
/// write_header(&mut head, b"Content-Type", b"text/plain")?;
/// write_content_length(&mut head, 9);
/// write_head_end(&mut head);
/// assert_eq!(head, b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n");
///
/// // A value cannot end its line.
/// assert!(write_header(&mut head, b"Location", b"/\r\nSet-Cookie: a=b").is_err());
/// # Ok::<(), InvalidHeader>(())
/// ```
pub fn write_status_line(out: &mut Vec<u8>, status: u16) {
    match status::status_line(status) {
        Some(line) => out.extend_from_slice(line),
        None if (100..=999).contains(&status) => {
            out.extend_from_slice(b"HTTP/1.1 ");
            write_u64(out, status.into());
            out.extend_from_slice(b" \r\n");
        }
        None => write_status_line(out, 500),
    }
}

/// Writes a status line with the application's reason phrase.
pub fn write_status_line_with_reason(
    out: &mut Vec<u8>,
    status: u16,
    reason: &[u8],
) -> Result<(), InvalidHeader> {
    if !(100..=999).contains(&status) {
        return Err(InvalidHeader::Status);
    }
    if scan::find_control(reason).is_some() {
        return Err(InvalidHeader::Reason);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    write_u64(out, status.into());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes `method SP target SP HTTP/1.1 CRLF`.
pub fn write_request_line(
    out: &mut Vec<u8>,
    method: &[u8],
    target: &[u8],
) -> Result<(), InvalidHeader> {
    let target_is_sound = !target.is_empty() && scan::target_end(target).is_none();
    if !scan::is_token(method) || !target_is_sound {
        return Err(InvalidHeader::RequestLine);
    }
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    Ok(())
}

/// Writes `name: value CRLF`.
pub fn write_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), InvalidHeader> {
    if !scan::is_token(name) {
        return Err(InvalidHeader::Name);
    }
    if scan::find_control(value).is_some() {
        return Err(InvalidHeader::Value);
    }
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the Content-Length field.
pub fn write_content_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    write_u64(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Writes the empty line that ends a head.
pub fn write_head_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Writes `number` in decimal.
pub fn write_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn status_lines_have_standard_reasons_and_a_space_without_one() {
        assert_eq!(written(|out| write_status_line(out, 200)), "HTTP/1.1 200 OK\r\n");
        assert_eq!(written(|out| write_status_line(out, 299)), "HTTP/1.1 299 \r\n");
        assert_eq!(
            written(|out| write_status_line(out, 42)),
            "HTTP/1.1 500 Internal Server Error\r\n"
        );
    }

    #[test]
    fn a_reason_of_the_application_is_kept_or_refused() {
        let mut out = Vec::new();
        assert_eq!(write_status_line_with_reason(&mut out, 404, b"Nope"), Ok(()));
        assert_eq!(out, b"HTTP/1.1 404 Nope\r\n");
        let split = write_status_line_with_reason(&mut out, 404, b"No\r\nX: y");
        assert_eq!(split, Err(InvalidHeader::Reason));
        assert_eq!(write_status_line_with_reason(&mut out, 7, b""), Err(InvalidHeader::Status));
        assert_eq!(out, b"HTTP/1.1 404 Nope\r\n");
    }

    #[test]
    fn a_header_that_could_split_the_response_is_not_written() {
        let mut out = Vec::new();
        for value in [&b"a\r\nSet-Cookie: b"[..], b"a\nb", b"a\rb", b"a\0b", b"\x7f"] {
            assert_eq!(write_header(&mut out, b"X", value), Err(InvalidHeader::Value));
        }
        for name in [&b""[..], b"a b", b"a:", b"a\r\nb", b"\xc3\xa4", b"a\0"] {
            assert_eq!(write_header(&mut out, name, b"v"), Err(InvalidHeader::Name));
        }
        assert_eq!(out, b"");
        assert_eq!(write_header(&mut out, b"X-A", b"\tb \xff"), Ok(()));
        assert_eq!(out, b"X-A: \tb \xff\r\n");
    }

    #[test]
    fn a_request_line_cannot_be_split() {
        let mut out = Vec::new();
        for (method, target) in [("G T", "/"), ("", "/"), ("GET", ""), ("GET", "/ HTTP/1.1\r\n")] {
            let result = write_request_line(&mut out, method.as_bytes(), target.as_bytes());
            assert_eq!(result, Err(InvalidHeader::RequestLine));
        }
        assert_eq!(write_request_line(&mut out, b"GET", b"/a?b"), Ok(()));
        assert_eq!(out, b"GET /a?b HTTP/1.1\r\n");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 1, 9, 10, 1234567890, u64::MAX] {
            assert_eq!(written(|out| write_u64(out, number)), number.to_string());
        }
        assert_eq!(written(|out| write_content_length(out, 0)), "Content-Length: 0\r\n");
    }
}
