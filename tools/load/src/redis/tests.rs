use super::*;
use crate::keys::Keys;
use crate::plan::Request;
use crate::random::Random;
use crate::target::Target;
use crate::template::{Source, Template};

fn command(method: &str, path: &str, body: &str) -> String {
    let request =
        Request { method: method.to_owned(), body: Template::literal(body), ..Request::get(path) };
    let target = Target::parse("redis://127.0.0.1/").expect("a URL");
    let mut message = Message::new(&request, &target);
    let (mut keys, mut random) = (Keys::of(1), Random::new(0));
    let mut source = Source { seq: 0, keys: &mut keys, random: &mut random, values: &[] };
    message.render(&request, &mut source, &[]);
    let mut out = Vec::new();
    write(&message, &mut out);
    String::from_utf8(out).expect("ASCII")
}

/// Status and body of a reply that is received in pieces of this size.
fn read(reply: &[u8], piece: usize) -> Option<(u16, String)> {
    let mut response = Response { wants_body: true, ..Response::default() };
    let mut reader = Reader::default();
    reader.begin();
    let mut is_whole = false;
    for bytes in reply.chunks(piece) {
        is_whole = reader.feed(bytes, &mut response).ok()?;
    }
    let body = String::from_utf8(response.body).expect("ASCII");
    is_whole.then_some((response.status, body))
}

#[test]
fn path_segments_and_the_body_are_arguments() {
    assert_eq!(command("GET", "/key", ""), "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    assert_eq!(
        command("SET", "/a%2Fb%zz", "value"),
        "*3\r\n$3\r\nSET\r\n$6\r\na/b%zz\r\n$5\r\nvalue\r\n"
    );
    assert_eq!(
        command("MGET", "/a//b", ""),
        "*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$0\r\n\r\n$1\r\nb\r\n"
    );
    assert_eq!(command("PING", "/", ""), "*1\r\n$4\r\nPING\r\n");
}

#[test]
fn a_reply_is_read_however_it_is_cut() {
    for (reply, status, body) in [
        ("+OK\r\n", 200, "OK"),
        (":17\r\n", 200, "17"),
        ("-ERR no\r\n", 500, "ERR no"),
        ("$5\r\nva\r\nl\r\n", 200, "va\r\nl"),
        ("$0\r\n\r\n", 200, ""),
        ("$-1\r\n", 404, ""),
        ("*-1\r\n", 404, ""),
        ("*0\r\n", 200, ""),
        ("*3\r\n$1\r\na\r\n$-1\r\n*2\r\n:1\r\n$1\r\nb\r\n", 200, "a1b"),
    ] {
        for piece in 1..=reply.len() {
            let read = read(reply.as_bytes(), piece);
            assert_eq!(read, Some((status, body.to_owned())), "{reply:?} in pieces of {piece}");
        }
    }
}

#[test]
fn an_invalid_reply_is_malformed_or_incomplete() {
    for reply in ["HTTP/1.1 200 OK\r\n", "\r\n", "$x\r\n", "$-2\r\n", "+OK\n", "+OK\r\n+OK\r\n"] {
        assert_eq!(read(reply.as_bytes(), reply.len()), None, "{reply:?}");
    }
    for reply in ["*2\r\n:1\r\n", "$5\r\nabc", "+O", "*18446744073709551615\r\n:1\r\n"] {
        assert_eq!(read(reply.as_bytes(), reply.len()), None, "{reply:?}");
    }
    assert_eq!(read(&[b'+'; outboard_resp::LINE_BYTES_MAX + 1], 4096), None);
}
