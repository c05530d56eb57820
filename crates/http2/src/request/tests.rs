//! Lists of fields and what becomes of them.

use super::*;
use crate::priority::Priority;

const FIELDS_MAX: usize = 10;
const REQUEST: BlockKind = BlockKind::Request { allows_protocol: true };

type List<'a> = &'a [(&'a str, &'a str)];

fn read(kind: BlockKind, fields: List) -> (BlockResult, RequestHead) {
    let mut head = RequestHead::new();
    let mut reader = HeadReader::new(&mut head, kind, FIELDS_MAX);
    let _ =
        fields.iter().try_for_each(|(name, value)| reader.add(name.as_bytes(), value.as_bytes()));
    let result = reader.finish();
    (result, head)
}

/// A GET of `/` with further fields.
fn get(further: List) -> (BlockResult, RequestHead) {
    let start = [(":method", "GET"), (":scheme", "https"), (":path", "/")];
    read(REQUEST, &[&start, further].concat())
}

#[test]
fn the_parts_of_a_request_are_separated() {
    let (result, head) = get(&[
        (":authority", "a.test"),
        ("cookie", "x=1"),
        ("content-length", "12"),
        ("priority", "u=1"),
        ("cookie", "y=2"),
    ]);
    assert_eq!(result, BlockResult::Valid);
    assert_eq!((head.method(), head.scheme()), (&b"GET"[..], &b"https"[..]));
    assert_eq!((head.path(), head.authority()), (&b"/"[..], &b"a.test"[..]));
    assert_eq!((head.content_length(), head.protocol()), (Some(12), None));
    assert_eq!(head.priority(), Some(Priority { urgency: 1, is_incremental: false }));
    assert_eq!(head.fields().get(b"cookie"), Some(&b"x=1; y=2"[..]));
    assert_eq!(head.fields().len(), 3);
}

#[test]
fn malformed_requests_are_refused() {
    for further in [
        &[(":method", "GET")][..],
        &[(":status", "200")],
        &[("a", "1"), (":authority", "a.test")],
        &[("Accept", "a")],
        &[("a b", "c")],
        &[("a", "b\r\nc: d")],
        &[("a", " b")],
        &[("connection", "close")],
        &[("transfer-encoding", "chunked")],
        &[("upgrade", "websocket")],
        &[("keep-alive", "1")],
        &[("proxy-connection", "close")],
        &[("te", "gzip")],
        &[("content-length", "1"), ("content-length", "1")],
        &[("content-length", "+1")],
        &[("content-length", "")],
        &[("content-length", "18446744073709551616")],
        &[(":authority", "user@a.test")],
        &[(":authority", "a b")],
        &[(":protocol", "websocket")],
    ] {
        assert_eq!(get(further).0, BlockResult::Malformed, "{further:?}");
    }
    assert_eq!(get(&[("te", "Trailers")]).0, BlockResult::Valid);
}

#[test]
fn a_request_has_method_scheme_and_path() {
    let (method, scheme, path) = ((":method", "GET"), (":scheme", "https"), (":path", "/"));
    let (authority, connect) = ((":authority", "a.test:1"), (":method", "CONNECT"));
    let protocol = (":protocol", "websocket");
    for (fields, is_valid) in [
        (&[method, scheme, path][..], true),
        (&[method, scheme], false),
        (&[method, path], false),
        (&[scheme, path], false),
        (&[], false),
        (&[method, scheme, (":path", "")], false),
        (&[method, scheme, (":path", "a")], false),
        (&[method, scheme, (":path", "/a b")], false),
        (&[method, scheme, (":path", "/a#b")], false),
        (&[method, scheme, (":path", "/\u{e9}")], false),
        (&[method, scheme, (":path", "*")], false),
        (&[(":method", "OPTIONS"), scheme, (":path", "*")], true),
        (&[(":method", "G T"), scheme, path], false),
        (&[method, (":scheme", "1"), path], false),
        (&[connect, authority], true),
        (&[connect], false),
        (&[connect, authority, scheme, path], false),
        (&[connect, authority, scheme, path, protocol], true),
        (&[connect, authority, protocol], false),
        (&[connect, scheme, path, protocol], false),
    ] {
        let expected = if is_valid { BlockResult::Valid } else { BlockResult::Malformed };
        assert_eq!(read(REQUEST, fields).0, expected, "{fields:?}");
    }
    let closed = BlockKind::Request { allows_protocol: false };
    let fields = [connect, authority, scheme, path, protocol];
    assert_eq!(read(closed, &fields).0, BlockResult::Malformed);
}

#[test]
fn a_request_has_one_host() {
    for (authority, hosts, expected) in [
        (Some("a.test"), &[][..], Some("a.test")),
        (Some("a.test"), &["a.test"], Some("a.test")),
        (Some("a.test"), &["A.TEST:443"], Some("a.test")),
        (Some("a.test:8443"), &["a.test:8443"], Some("a.test:8443")),
        (Some("a.test:8443"), &["a.test"], None),
        (Some("a.test"), &["b.test"], None),
        (Some("a.test"), &[""], None),
        (Some("a.test"), &["a.test", "a.test"], None),
        (None, &["a.test"], Some("a.test")),
        (None, &["a.test", "a.test"], None),
        (None, &["u@a.test"], None),
        (None, &[], Some("")),
    ] {
        let authority = authority.map(|authority| (":authority", authority));
        let fields = authority.into_iter().chain(hosts.iter().map(|host| ("host", *host)));
        let (result, head) = get(&fields.collect::<Vec<_>>());
        let found = (result == BlockResult::Valid).then(|| head.authority());
        assert_eq!(found, expected.map(str::as_bytes), "{authority:?} {hosts:?}");
        assert_eq!(head.fields().get(b"host"), None);
    }
}

#[test]
fn the_number_of_fields_is_limited() {
    assert_eq!(get(&[("a", "1"); 10]).0, BlockResult::Valid);
    assert_eq!(get(&[("a", "1"); 11]).0, BlockResult::TooLarge);
}

#[test]
fn trailers_have_no_pseudo_fields() {
    let trailers = |fields| read(BlockKind::Trailers, fields).0;
    assert_eq!(trailers(&[("a", "1"), ("b", "2")]), BlockResult::Valid);
    assert_eq!(trailers(&[(":path", "/")]), BlockResult::Malformed);
    assert_eq!(trailers(&[("connection", "close")]), BlockResult::Malformed);
}
