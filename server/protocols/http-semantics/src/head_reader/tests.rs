//! Lists of fields and what becomes of them.

use super::*;
use crate::priority::Priority;
use MalformedFields::*;

const REQUEST: SectionKind = SectionKind::Request { allows_protocol: true };

const METHOD: Field = (":method", "GET");
const SCHEME: Field = (":scheme", "https");
const PATH: Field = (":path", "/");
const AUTHORITY: Field = (":authority", "a.test:1");
const CONNECT: Field = (":method", "CONNECT");
const PROTOCOL: Field = (":protocol", "websocket");

type Field = (&'static str, &'static str);
type List<'a> = &'a [(&'a str, &'a str)];

fn read_into(
    head: &mut RequestHead,
    kind: SectionKind,
    fields: List<'_>,
) -> Result<(), MalformedFields> {
    let mut reader = HeadReader::new(head, kind);
    fields.iter().try_for_each(|(name, value)| reader.add(name.as_bytes(), value.as_bytes()))?;
    reader.finish()
}

fn read(kind: SectionKind, fields: List<'_>) -> Result<RequestHead, MalformedFields> {
    let mut head = RequestHead::new();
    read_into(&mut head, kind, fields).map(|()| head)
}

/// A GET of `/` with further fields.
fn get(further: List<'_>) -> Result<RequestHead, MalformedFields> {
    read(REQUEST, &[&[METHOD, SCHEME, PATH], further].concat())
}

#[test]
fn the_parts_of_a_request_are_separated() {
    let head = get(&[
        (":authority", "a.test"),
        ("cookie", "x=1"),
        ("content-length", "12"),
        ("priority", "u=1"),
        ("cookie", "y=2"),
        ("empty", ""),
    ])
    .unwrap();
    assert_eq!((head.method(), head.scheme()), (&b"GET"[..], &b"https"[..]));
    assert_eq!((head.path(), head.authority()), (&b"/"[..], &b"a.test"[..]));
    assert_eq!((head.content_length(), head.protocol()), (Some(12), None));
    assert_eq!(head.priority(), Some(Priority { urgency: 1, is_incremental: false }));
    assert_eq!(head.fields().get(b"cookie"), Some(&b"x=1; y=2"[..]));
    assert_eq!(head.fields().len(), 4);
    assert!(!head.is_connect());
}

#[test]
fn an_extended_connect_has_a_protocol() {
    let head = read(REQUEST, &[CONNECT, PROTOCOL, SCHEME, AUTHORITY, PATH]).unwrap();
    assert!(head.is_connect());
    assert_eq!(head.protocol(), Some(&b"websocket"[..]));
    assert_eq!((head.path(), head.authority()), (&b"/"[..], &b"a.test:1"[..]));
}

#[test]
fn malformed_fields_are_refused() {
    for (further, error) in [
        (&[METHOD][..], DuplicateField),
        (&[(":status", "200")], UnexpectedPseudoField),
        (&[PROTOCOL], UnexpectedPseudoField),
        (&[("a", "1"), AUTHORITY], LatePseudoField),
        (&[("host", "a.test"), AUTHORITY], LatePseudoField),
        (&[("Accept", "a")], InvalidName),
        (&[("a b", "c")], InvalidName),
        (&[("", "c")], InvalidName),
        (&[("a", "b\r\nc: d")], InvalidValue),
        (&[("a", " b")], InvalidValue),
        (&[("connection", "close")], ConnectionField),
        (&[("transfer-encoding", "chunked")], ConnectionField),
        (&[("upgrade", "websocket")], ConnectionField),
        (&[("keep-alive", "1")], ConnectionField),
        (&[("proxy-connection", "close")], ConnectionField),
        (&[("te", "gzip")], ConnectionField),
        (&[("te", "trailers, gzip")], ConnectionField),
        (&[("content-length", "1"), ("content-length", "1")], DuplicateField),
        (&[("content-length", "+1")], InvalidContentLength),
        (&[("content-length", "")], InvalidContentLength),
        (&[("content-length", "18446744073709551616")], InvalidContentLength),
        (&[(":authority", "user@a.test")], InvalidAuthority),
        (&[(":authority", "a b")], InvalidAuthority),
    ] {
        assert_eq!(get(further).map(drop), Err(error), "{further:?}");
    }
    assert!(get(&[("te", "Trailers"), ("content-length", "18446744073709551615")]).is_ok());
}

#[test]
fn a_request_has_method_scheme_and_path() {
    for (fields, expected) in [
        (&[METHOD, SCHEME, PATH][..], Ok(())),
        (&[METHOD, SCHEME], Err(MissingPseudoField)),
        (&[METHOD, PATH], Err(MissingPseudoField)),
        (&[SCHEME, PATH], Err(MissingPseudoField)),
        (&[], Err(MissingPseudoField)),
        (&[METHOD, SCHEME, (":path", "")], Err(InvalidPath)),
        (&[METHOD, SCHEME, (":path", "a")], Err(InvalidPath)),
        (&[METHOD, SCHEME, (":path", "/a b")], Err(InvalidPath)),
        (&[METHOD, SCHEME, (":path", "/a#b")], Err(InvalidPath)),
        (&[METHOD, SCHEME, (":path", "/\r\n")], Err(InvalidPath)),
        (&[METHOD, SCHEME, (":path", "/\u{e9}")], Err(InvalidPath)),
        (&[METHOD, SCHEME, (":path", "*")], Err(InvalidPath)),
        (&[(":method", "OPTIONS"), SCHEME, (":path", "*")], Ok(())),
        (&[(":method", "G T"), SCHEME, PATH], Err(InvalidMethod)),
        (&[(":method", ""), SCHEME, PATH], Err(InvalidMethod)),
        (&[METHOD, (":scheme", "1"), PATH], Err(InvalidScheme)),
        (&[METHOD, (":scheme", ""), PATH], Err(InvalidScheme)),
    ] {
        assert_eq!(read(REQUEST, fields).map(drop), expected, "{fields:?}");
    }
}

#[test]
fn connect_has_an_authority_and_a_target_only_with_a_protocol() {
    for (fields, expected) in [
        (&[CONNECT, AUTHORITY][..], Ok(())),
        (&[CONNECT], Err(MissingPseudoField)),
        (&[CONNECT, ("host", "a.test:1")], Err(MissingPseudoField)),
        (&[CONNECT, AUTHORITY, SCHEME], Err(UnexpectedPseudoField)),
        (&[CONNECT, AUTHORITY, PATH], Err(UnexpectedPseudoField)),
        (&[CONNECT, AUTHORITY, SCHEME, PATH, PROTOCOL], Ok(())),
        (&[CONNECT, AUTHORITY, PROTOCOL], Err(MissingPseudoField)),
        (&[CONNECT, AUTHORITY, SCHEME, PROTOCOL], Err(MissingPseudoField)),
        (&[CONNECT, SCHEME, PATH, PROTOCOL], Err(MissingPseudoField)),
        (&[CONNECT, AUTHORITY, SCHEME, PATH, (":protocol", "web socket")], Err(InvalidProtocol)),
    ] {
        assert_eq!(read(REQUEST, fields).map(drop), expected, "{fields:?}");
    }
    let closed = SectionKind::Request { allows_protocol: false };
    let fields = [CONNECT, AUTHORITY, SCHEME, PATH, PROTOCOL];
    assert_eq!(read(closed, &fields).map(drop), Err(UnexpectedPseudoField));
}

#[test]
fn a_request_has_one_host() {
    for (authority, hosts, expected) in [
        (Some("a.test"), &[][..], Ok("a.test")),
        (Some("a.test"), &["a.test"], Ok("a.test")),
        (Some("a.test"), &["A.TEST:443"], Ok("a.test")),
        (Some("a.test:8443"), &["a.test:8443"], Ok("a.test:8443")),
        (Some("[::1]:443"), &["[::1]:443"], Ok("[::1]:443")),
        (Some("a.test:8443"), &["a.test"], Err(InvalidAuthority)),
        (Some("a.test"), &["b.test"], Err(InvalidAuthority)),
        (Some("a.test"), &[""], Err(InvalidAuthority)),
        (Some("a.test"), &["a.test", "a.test"], Err(DuplicateField)),
        (None, &["a.test"], Ok("a.test")),
        (None, &["a.test", "a.test"], Err(DuplicateField)),
        (None, &["u@a.test"], Err(InvalidAuthority)),
        (None, &[], Ok("")),
    ] {
        let authority = authority.map(|authority| (":authority", authority));
        let fields = authority.into_iter().chain(hosts.iter().map(|host| ("host", *host)));
        let result = get(&fields.collect::<Vec<_>>());
        let found = result.as_ref().map(RequestHead::authority).map_err(|error| *error);
        assert_eq!(found, expected.map(str::as_bytes), "{authority:?} {hosts:?}");
        assert!(result.is_err() || result.unwrap().fields().is_empty());
    }
}

#[test]
fn trailers_have_no_pseudo_fields() {
    let mut head = get(&[("content-length", "1")]).unwrap();
    for (fields, expected) in [
        (&[("a", "1"), ("b", "2"), ("host", "a"), ("content-length", "x")][..], Ok(())),
        (&[PATH], Err(UnexpectedPseudoField)),
        (&[("connection", "close")], Err(ConnectionField)),
    ] {
        assert_eq!(read_into(&mut head, SectionKind::Trailers, fields), expected, "{fields:?}");
        assert_eq!((head.content_length(), head.path()), (None, &b""[..]));
        assert_eq!(head.fields().len(), if expected.is_ok() { 4 } else { 0 });
    }
}
