//! Heads of PHP: what is passed on, what is removed, and what is refused.

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
fn invalid_header_lines_are_dropped_and_split_ones_refused() {
    for (line, sent) in [
        (&b"X-Flag"[..], &b"X-Flag: \r\n"[..]),
        (b"X-Flag ", b"X-Flag: \r\n"),
        (b"Content-Length", b""),
    ] {
        let mut head = read(&[line]).unwrap();
        assert_eq!(head.headers.bytes, sent);
        assert_eq!(head.take_dropped(), None);
    }
    for line in [
        &b"no colon"[..],
        b": no name",
        b"Bad Name: x",
        b"X(1): x",
        b"X\xc3: x",
        b"X: a\x01b",
        b"X: \x7f",
        b"Content-Type",
    ] {
        let mut head = read(&[b"A: 1", line, b"B: 2", line]).unwrap();
        assert_eq!(head.headers.bytes, b"A: 1\r\nB: 2\r\n", "{}", line.escape_ascii());
        let text = head.take_dropped().unwrap();
        assert!(text.ends_with(&format!(": {} (and 1 more)", line.escape_ascii())), "{text}");
        assert_eq!(head.take_dropped(), None);
    }
    for line in [&b"X: a\rb"[..], b"X: a\nb", b"X: a\0b", b"X\nY: a", b"no\rcolon", b"a b: \n"] {
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
        ResponseHead::read_trailers(&payload).map(|head| head.headers.bytes)
    };
    let lines: &[&[u8]] =
        &[b"grpc-status: 0", b"Content-Length : 3", b"TE: x", b"X-Sendfile: /etc"];
    assert_eq!(read(lines), Ok(b"grpc-status: 0\r\n".to_vec()));
    assert!(read(&[b"X: a\nb"]).is_err());
    assert_eq!(read(&[b"no colon", b"A: 1"]), Ok(b"A: 1\r\n".to_vec()));
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
    assert_eq!(interim(103, b"no colon"), Some((103, Vec::new())));
}
