//! RFC 9114 4.3.1 and 4.4, RFC 9220 3.

use super::*;
use MalformedFields::*;

const GET: &str = ":method=GET;:scheme=https;:authority=a.test;:path=/";
const CONNECT: &str = ":method=CONNECT;:authority=a.test:443";
const WEBSOCKET: &str =
    ":method=CONNECT;:protocol=websocket;:scheme=https;:authority=a.test;:path=/chat";

fn read(fields: &str, is_connect_protocol: bool) -> Result<RequestHead, MalformedFields> {
    let mut head = RequestHead::default();
    for field in fields.split(';').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap();
        head.push(name.as_bytes(), value.as_bytes())?;
    }
    head.check(is_connect_protocol)?;
    Ok(head)
}

#[test]
fn requests_are_accepted() {
    for fields in [
        GET,
        ":method=GET;:scheme=http;:path=/a?b%20c;host=a.test:8080",
        ":method=OPTIONS;:scheme=https;:authority=a.test;:path=*",
        ":method=GET;:scheme=https;:authority=[::1]:443;:path=/;host=[::1]:443",
        ":method=POST;:scheme=https;:authority=a.test;:path=/;content-length=0;cookie=a;cookie=b",
        CONNECT,
    ] {
        assert!(read(fields, false).is_ok(), "{fields}");
    }
    let head = read(&format!("{WEBSOCKET};content-length=12"), true).unwrap();
    assert_eq!(head.method(), b"CONNECT");
    assert_eq!(head.protocol(), Some(&b"websocket"[..]));
    assert_eq!(head.scheme(), Some(&b"https"[..]));
    assert_eq!((head.authority(), head.host()), (Some(&b"a.test"[..]), Some(&b"a.test"[..])));
    assert_eq!(head.path(), Some(&b"/chat"[..]));
    assert_eq!(head.content_length(), Some(12));
}

#[test]
fn malformed_requests_are_rejected() {
    let rest = |change: &str| format!("{GET};{change}");
    for (fields, error) in [
        (String::new(), MissingPseudoField),
        (":scheme=https;:authority=a.test;:path=/".into(), MissingPseudoField),
        (":method=GET;:authority=a.test;:path=/".into(), MissingPseudoField),
        (":method=GET;:scheme=https;:authority=a.test".into(), MissingPseudoField),
        (":method=GET;:scheme=https;:path=/".into(), InvalidAuthority),
        (":method=GET;:scheme=https;:authority=;:path=/".into(), InvalidAuthority),
        (":method=GET;:scheme=https;:authority=a@b;:path=/".into(), InvalidAuthority),
        (":method=G T;:scheme=https;:authority=a.test;:path=/".into(), InvalidMethod),
        (":method=;:scheme=https;:authority=a.test;:path=/".into(), InvalidMethod),
        (":method=GET;:scheme=1;:authority=a.test;:path=/".into(), InvalidScheme),
        (":method=GET;:scheme=;:authority=a.test;:path=/".into(), InvalidScheme),
        (":method=GET;:scheme=https;:authority=a.test;:path=".into(), InvalidPath),
        (":method=GET;:scheme=https;:authority=a.test;:path=a".into(), InvalidPath),
        (":method=GET;:scheme=https;:authority=a.test;:path=*".into(), InvalidPath),
        (":method=GET;:scheme=https;:authority=a.test;:path=/a b".into(), InvalidPath),
        (":method=GET;:scheme=https;:authority=a.test;:path=/\r\n".into(), InvalidPath),
        (":method=GET;:scheme=https;:authority=a.test;:path=/#a".into(), InvalidPath),
        (rest(":path=/"), DuplicateField),
        (rest(":status=200"), UnexpectedPseudoField),
        (rest(":unknown=1"), UnexpectedPseudoField),
        (rest(":protocol=websocket"), UnexpectedPseudoField),
        (":method=GET;a=b;:scheme=https".into(), LatePseudoField),
        (rest("host=b.test"), InvalidAuthority),
        (rest("host=a.test;host=a.test"), DuplicateField),
        (rest("content-length=1;content-length=1"), DuplicateField),
        (rest("content-length="), InvalidContentLength),
        (rest("content-length=+1"), InvalidContentLength),
        (rest("content-length=1000000000000000000"), InvalidContentLength),
        (rest("Accept=a"), InvalidName),
        (rest("connection=close"), ConnectionField),
        (":method=CONNECT;:authority=a.test".into(), InvalidAuthority),
        (":method=CONNECT;host=a.test:1".into(), MissingPseudoField),
        (format!("{CONNECT};:path=/"), UnexpectedPseudoField),
        (format!("{CONNECT};:scheme=https"), UnexpectedPseudoField),
    ] {
        assert_eq!(read(&fields, true).map(drop), Err(error), "{fields}");
    }
    assert_eq!(read(WEBSOCKET, false).map(drop), Err(UnexpectedPseudoField));
    let invalid = WEBSOCKET.replace("websocket", "web socket");
    assert_eq!(read(&invalid, true).map(drop), Err(UnexpectedPseudoField));
    let incomplete = WEBSOCKET.replace(":path=/chat", "");
    assert_eq!(read(&incomplete, true).map(drop), Err(MissingPseudoField));
}
