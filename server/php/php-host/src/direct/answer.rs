//! [`Composer`]: the response that a worker writes to a direct connection, byte for byte as the gateway would.
//!
//! Called by [`super`]. Invariant: a response with anything that the gateway decides or would change, or that is not
//! valid, is not composed: the gateway gets it.

use outboard_http_semantics::DateCache;
use outboard_http1::{
    write_content_length, write_head_end, write_header, write_status_line,
    write_status_line_with_reason,
};
use outboard_ring::response::{LineKind, ResponseHead};

#[derive(Debug)]
pub(super) struct Composer {
    out: Vec<u8>,
    date: DateCache,
}

impl Default for Composer {
    fn default() -> Self {
        Self { out: Vec::new(), date: DateCache::new(0) }
    }
}

/// Name, value and kind of a line; `None` if the gateway would not send it as it is.
fn read(line: &[u8]) -> Option<(&[u8], &[u8], LineKind)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = (line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii());
    Some((name, value, LineKind::of(name)))
}

impl Composer {
    /// Composes a response with this `Head` frame and body, and returns its status.
    pub(super) fn compose(&mut self, head: &[u8], body: &[u8], unix_s: u64) -> Option<u16> {
        let head = ResponseHead::decode(head).ok()?;
        // Without a body, with a part of one, or of the server's making.
        if !(200..500).contains(&head.status) || matches!(head.status, 204 | 205 | 206 | 304) {
            return None;
        }
        let (mut has_date, mut has_server) = (false, false);
        for line in head.lines() {
            match read(line)?.2 {
                LineKind::Date => has_date = true,
                LineKind::Server => has_server = true,
                LineKind::Sendfile | LineKind::AccelRedirect => return None,
                _ => {}
            }
        }
        let out = &mut self.out;
        out.clear();
        match head.reason {
            b"" => write_status_line(out, head.status),
            reason => write_status_line_with_reason(out, head.status, reason).ok()?,
        }
        if !has_server {
            out.extend_from_slice(b"Server: outboard\r\n");
        }
        if !has_date {
            out.extend_from_slice(self.date.line(unix_s));
        }
        for line in head.lines() {
            let (name, value, kind) = read(line)?;
            if matches!(kind, LineKind::Other | LineKind::Date | LineKind::Server) {
                write_header(out, name, value).ok()?;
            }
        }
        write_content_length(out, body.len() as u64);
        write_head_end(out);
        out.extend_from_slice(body);
        Some(head.status)
    }

    /// The response.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Forgets the response.
    pub(super) fn clear(&mut self) {
        crate::kept_memory::wipe(&mut self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(status: u16, reason: &str, lines: &[&str]) -> Option<String> {
        let mut head = Vec::new();
        ResponseHead::encode_status(&mut head, status, reason.as_bytes());
        lines.iter().for_each(|line| ResponseHead::encode_line(&mut head, line.as_bytes()));
        let mut composer = Composer::default();
        composer.compose(&head, b"hi", 784_111_777)?;
        Some(String::from_utf8(composer.bytes().to_vec()).unwrap())
    }

    #[test]
    fn a_plain_response_is_what_the_gateway_would_send() {
        let lines =
            ["Content-Type: text/plain", "Content-Length: 99", "Connection: close", "X-A:b"];
        let expected = "HTTP/1.1 200 OK\r\nServer: outboard\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
            Content-Type: text/plain\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(composed(200, "", &lines).unwrap(), expected);
        let own = composed(404, "Nope", &["Server: mine", "Date: now"]).unwrap();
        assert_eq!(
            own,
            "HTTP/1.1 404 Nope\r\nServer: mine\r\nDate: now\r\nContent-Length: 2\r\n\r\nhi"
        );
    }

    #[test]
    fn what_the_gateway_decides_is_not_composed() {
        for status in [100, 199, 204, 205, 206, 304, 500, 503, 999] {
            assert_eq!(composed(status, "", &[]), None, "{status}");
        }
        for line in ["X-Sendfile: /a", "x-accel-redirect: /b", "no colon", "a b: c", "X: a\rb"] {
            assert_eq!(composed(200, "", &[line]), None, "{line}");
        }
        assert_eq!(composed(200, "O\rK", &[]), None);
    }
}
