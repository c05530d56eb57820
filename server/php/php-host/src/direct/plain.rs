//! Which requests a worker reads by itself: complete ones, without anything that the gateway decides.
//!
//! Called by [`super`]. Invariant: what is not known to be plain is not.

use outboard_http1::{BodyFraming, Method, RequestHead, Version};

/// The length of a request that is complete and plain.
pub(super) fn length(head: &RequestHead, input: &[u8], head_len: usize) -> Option<usize> {
    let is_plain = matches!(head.method_kind(), Method::Get | Method::Post)
        && head.version() == Version::Http11
        && head.target_authority(input).is_none()
        && head.path(input).starts_with(b"/")
        && head.upgrade(input).is_none()
        && !head.repeats_cookie()
        && head.headers(input).all(|(name, _)| !needs_gateway(name));
    let body_bytes = match head.body() {
        BodyFraming::None => 0,
        BodyFraming::Length(bytes) => usize::try_from(bytes).ok()?,
        BodyFraming::Chunked | BodyFraming::Stream => return None,
    };
    let length = head_len.checked_add(body_bytes)?;
    (is_plain && length <= input.len()).then_some(length)
}

/// Whether a field is for the gateway: it names something of the connection, or CGI would confuse it with another.
fn needs_gateway(name: &[u8]) -> bool {
    const FIELDS: [&[u8]; 10] = [
        b"connection",
        b"early-data",
        b"expect",
        b"http2-settings",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    name.contains(&b'_') || FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_http1::{HeadLimits, HeadStatus};

    fn plain(request: &str) -> Option<usize> {
        let mut head = RequestHead::new();
        match head.parse(request.as_bytes(), &HeadLimits::default()) {
            Ok(HeadStatus::Complete { head_len }) => length(&head, request.as_bytes(), head_len),
            _ => panic!("{request} is no request"),
        }
    }

    #[test]
    fn complete_requests_without_a_wish_are_plain() {
        for request in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a?b HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nAccept-Encoding: gzip\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab",
        ] {
            assert_eq!(plain(request), Some(request.len()), "{request}");
            assert_eq!(plain(&format!("{request}GET /next")), Some(request.len()), "{request}");
        }
    }

    #[test]
    fn everything_else_is_the_gateways() {
        for line in [
            "GET / HTTP/1.0",
            "HEAD / HTTP/1.1",
            "PUT / HTTP/1.1",
            "GET http://a/ HTTP/1.1",
            "OPTIONS * HTTP/1.1",
        ] {
            assert_eq!(plain(&format!("{line}\r\nHost: a\r\n\r\n")), None, "{line}");
        }
        for field in [
            "Connection: close",
            "connection: keep-alive",
            "Connection: Upgrade\r\nUpgrade: websocket",
            "Expect: 100-continue",
            "Transfer-Encoding: chunked",
            "TE: trailers",
            "Content-Length: 3",
            "X_A: 1",
            "Cookie: a=1\r\nCookie: b=2",
        ] {
            let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\nab");
            assert_eq!(plain(&request), None, "{field}");
        }
    }
}
