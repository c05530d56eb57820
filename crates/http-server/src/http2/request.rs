//! The request of an HTTP/2 stream, written as HTTP/1.1.
//!
//! Invariant: the request has one meaning: one host, one Cookie line, one framing.

use crate::transport::pipe::Pipe;
use bytes::Bytes;
use h2::RecvStream;
use http::Request;
use outboard_http1::{
    LAST_CHUNK, write_chunk_head, write_head_end, write_header, write_request_line,
};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Poll;

const CHUNK_END: &[u8] = b"\r\n";

/// The host of a request; `None` if there are two (RFC 9113 8.3.1), or one twice (RFC 9112 3.2).
fn host(head: &Request<()>) -> Option<&[u8]> {
    let mut lines = head.headers().get_all("host").iter().map(|host| host.as_bytes());
    let (host, second) = (lines.next(), lines.next());
    let authority = head.uri().authority().map(|authority| authority.as_str().as_bytes());
    // The default port is optional (RFC 3986 6.2.3).
    let bare = |host: &'_ [u8]| host.strip_suffix(b":443").unwrap_or(host).to_ascii_lowercase();
    let agree = authority.zip(host).is_none_or(|(authority, host)| bare(authority) == bare(host));
    (second.is_none() && agree).then_some(authority.or(host).unwrap_or_default())
}

/// The head in HTTP/1.1 (RFC 9113 8.3.1); `None` if it is malformed.
pub(super) fn to_http1(head: &Request<()>, has_no_body: bool) -> Option<Vec<u8>> {
    let host = host(head)?;
    write_head(head, host, has_no_body).ok()
}

fn write_head(
    head: &Request<()>,
    host: &[u8],
    has_no_body: bool,
) -> Result<Vec<u8>, outboard_http1::InvalidHeader> {
    let mut bytes = Vec::with_capacity(1024);
    let target = head.uri().path_and_query().map_or("*", |target| target.as_str());
    let target =
        if head.method() == http::Method::OPTIONS && target == "/*" { "*" } else { target };
    write_request_line(&mut bytes, head.method().as_str().as_bytes(), target.as_bytes())?;
    write_header(&mut bytes, b"Host", host)?;
    let mut cookies: Vec<u8> = Vec::new();
    for (name, value) in head.headers() {
        match name.as_str() {
            // `Expect` has no use here: interim responses are always possible.
            "host" | "expect" => {}
            // RFC 9113 8.2.3.
            "cookie" if cookies.is_empty() => cookies.extend_from_slice(value.as_bytes()),
            "cookie" => cookies.extend([b"; ", value.as_bytes()].concat()),
            name => write_header(&mut bytes, name.as_bytes(), value.as_bytes())?,
        }
    }
    if !cookies.is_empty() {
        write_header(&mut bytes, b"Cookie", &cookies)?;
    }
    if !has_no_body && !head.headers().contains_key("content-length") {
        write_header(&mut bytes, b"Transfer-Encoding", b"chunked")?;
    }
    write_head_end(&mut bytes);
    Ok(bytes)
}

/// Forwards the body to the connection.
pub(super) async fn forward_body(pipe: Rc<Pipe>, mut body: RecvStream, is_chunked: bool) {
    while let Some(data) = next_data(&pipe, &mut body).await {
        // An incomplete body has no end.
        let Ok(data) = data else { return };
        let mut piece = Vec::with_capacity(data.len() + 16);
        if is_chunked && !data.is_empty() {
            write_chunk_head(&mut piece, data.len());
        }
        piece.extend_from_slice(&data);
        if is_chunked && !data.is_empty() {
            piece.extend_from_slice(CHUNK_END);
        }
        // The window is extended only after the piece was forwarded.
        if write(&pipe, &piece).await.is_err() {
            return;
        }
        if body.flow_control().release_capacity(data.len()).is_err() {
            return;
        }
    }
    if is_chunked {
        // The connection may have responded already.
        let _ = write(&pipe, LAST_CHUNK).await;
    }
}

/// The next part of the body, as long as the connection reads it.
async fn next_data(pipe: &Pipe, body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    poll_fn(|context| match pipe.poll_unread() {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => body.poll_data(context),
    })
    .await
}

/// Writes everything.
///
/// # Errors
/// The connection is closed.
pub(super) async fn write(pipe: &Pipe, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        poll_fn(|_| pipe.poll_writable()).await;
        let written = pipe.try_write(&[IoSlice::new(bytes)])?;
        bytes = &bytes[written.unwrap_or(0)..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_host() {
        for (authority, hosts, expected) in [
            ("https://a.test/", &[][..], Some("a.test")),
            ("https://a.test/", &["a.test"], Some("a.test")),
            ("https://a.test/", &["A.TEST:443"], Some("a.test")),
            ("https://a.test:8443/", &["a.test:8443"], Some("a.test:8443")),
            ("https://a.test:8443/", &["a.test"], None),
            ("https://a.test/", &["b.test"], None),
            ("https://a.test/", &[""], None),
            ("https://a.test/", &["a.test", "a.test"], None),
            ("/", &["a.test"], Some("a.test")),
            ("/", &["a.test", "a.test"], None),
            ("/", &["a.test", "b.test"], None),
            ("/", &[], Some("")),
        ] {
            let request = Request::get(authority);
            let head = hosts.iter().fold(request, |head, host| head.header("host", *host));
            let head = head.body(()).unwrap();
            let found = host(&head);
            assert_eq!(found, expected.map(str::as_bytes), "{authority} {hosts:?}");
        }
    }
}
