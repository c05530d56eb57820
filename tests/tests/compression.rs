//! What PHP makes is compressed for clients that take it, and is otherwise what it was.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Fifo, Request};
use std::process::Command;

fn serving() -> Configured {
    let text = Configured::text("").replace("root = \"www\"", "root = \"www\"\ncompress = true");
    Configured::start(Docroot::of("compression"), &text)
}

/// Head and decoded body of an answer to a client that takes these codings.
fn ask(site: &Configured, path: &str, accept: &str) -> (String, Vec<u8>) {
    let output = Command::new("curl")
        .args(["-sS", "-D", "-", "--compressed", "-H", &format!("Accept-Encoding: {accept}")])
        .arg(format!("http://{}{path}", site.address()))
        .output()
        .expect("curl is there");
    assert!(output.status.success(), "{output:?}");
    let end = output.stdout.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(output.stdout[..end].to_vec()).unwrap();
    (head, output.stdout[end..].to_vec())
}

/// The head, without what differs each time.
fn has(head: &str, line: &str) -> bool {
    head.lines().any(|theirs| theirs.eq_ignore_ascii_case(line))
}

#[test]
fn every_coding_gives_the_same_text() {
    let site = serving();
    let plain = site.client().get("/text.php").expect(200);
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
    assert_eq!(plain.header("etag"), Some("\"strong\""));
    assert_eq!(plain.header("accept-ranges"), Some("bytes"));
    for coding in ["gzip", "br", "zstd"] {
        let (head, body) = ask(&site, "/text.php", coding);
        assert!(has(&head, &format!("Content-Encoding: {coding}")), "{head}");
        assert!(has(&head, "Vary: Accept-Encoding") && has(&head, "ETag: W/\"strong\""), "{head}");
        assert!(!head.to_lowercase().contains("accept-ranges"), "{head}");
        assert!(body == plain.body, "{coding}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        assert!(length.unwrap().parse::<usize>().unwrap() < plain.body.len() / 5, "{head}");
    }
}

#[test]
fn accept_encoding_selects_the_coding() {
    let site = serving();
    for (accept, coding) in [
        ("gzip, deflate, br, zstd", Some("br")),
        ("gzip;q=1, br;q=0.1", Some("gzip")),
        ("*;q=0", None),
        ("identity", None),
        ("identity;q=0", Some("br")),
    ] {
        let answer =
            site.client().send(&Request::get("/text.php").header("Accept-Encoding", accept));
        assert_eq!(answer.expect(200).header("content-encoding"), coding, "{accept}");
    }
}

#[test]
fn binary_and_no_transform_responses_are_not_compressed() {
    let site = serving();
    let coding = |path: &str| {
        let answer = site.client().send(&Request::get(path).header("Accept-Encoding", "gzip"));
        answer.header("content-encoding").map(str::to_owned)
    };
    assert_eq!(coding("/kind.php?type=text/plain").as_deref(), Some("gzip"));
    assert_eq!(coding("/kind.php?type=application/json&status=404").as_deref(), Some("gzip"));
    for path in [
        "/short.php",
        "/kind.php?type=image/png",
        "/kind.php?type=text/event-stream",
        "/kind.php?type=text/plain&status=206",
        "/kind.php?type=text/plain&control=public,%20no-transform",
    ] {
        assert_eq!(coding(path), None, "{path}");
    }
}

#[test]
fn nothing_is_compressed_by_default() {
    let site = Configured::serving("compression", "");
    let request = Request::get("/text.php").header("Accept-Encoding", "gzip");
    let answer = site.client().send(&request).expect(200);
    assert_eq!((answer.header("content-encoding"), answer.header("vary")), (None, None));
}

#[test]
fn output_compressed_by_php_is_not_compressed_again() {
    let site = serving();
    let (head, body) = ask(&site, "/coded.php", "gzip");
    assert_eq!(head.matches("Content-Encoding: gzip").count(), 1, "{head}");
    assert_eq!(body, "the same again ".repeat(500).as_bytes());
}

#[test]
fn pieces_are_sent_when_they_are_made() {
    let site = serving();
    let mut gate = Fifo::at(site.docroot().beside().path().join("gate"));
    let path = format!("/pieces.php?gate={}", gate.path().display());
    let mut wire = site.wire();
    wire.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n"));
    wire.send("Connection: close\r\n\r\n");
    let head = wire.head();
    assert!(head.contains("Transfer-Encoding: chunked\r\n"), "{head}");
    assert!(head.contains("Content-Encoding: gzip\r\n"), "{head}");
    // PHP waits; the first piece, a chunk whose length is not zero, is there all the same.
    assert_ne!(wire.exactly(2), b"0\r");
    gate.open();
    wire.to_any_end();
    // It waits in the pipe for the next one.
    gate.open();
    let (_, body) = ask(&site, &path, "gzip");
    let expected = format!("first\n{}third\n", "second\n".repeat(2000));
    assert_eq!(body, expected.as_bytes());
}

#[test]
fn a_response_ends_with_its_length_though_the_script_goes_on() {
    let site = serving();
    for (number, accept) in ["identity", "gzip", "br"].into_iter().enumerate() {
        let gate = site.docroot().beside().path().join(format!("gate-{number}"));
        let mut gate = Fifo::at(gate);
        let target = format!("/early.php?gate={}", gate.path().display());
        let mut client = site.client();
        let early =
            client.send(&Request::get(&target).header("Accept-Encoding", accept)).expect(200);
        let coding = early.header("content-encoding").unwrap_or("identity");
        assert_eq!(coding, accept);
        assert!(accept != "identity" || early.body.len() == 15_000);
        // The next request of the connection does not wait for the script.
        client.get("/short.php").expect(200);
        gate.open();
    }
}

#[test]
fn a_length_that_php_announced_is_that_of_the_plain_text() {
    let site = serving();
    for coding in ["gzip", "br", "zstd"] {
        let (head, body) = ask(&site, "/length.php", coding);
        assert!(!head.contains("300000"), "{head}");
        assert_eq!(body.len(), 300_000, "{head}");
    }
}
