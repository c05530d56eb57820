//! Compressed responses of scripts, composed pages and other servers, and threads that take their time.

use crate::testing::{BusyThreads, Site, Upstream, in_loop, ok, request_text, response, wait_for};
use flate2::read::GzDecoder;
use outboard_http_server::TestClient;
use outboard_reactor::yield_now;
use std::io::Read;

const GZIP: &str = "Accept-Encoding: gzip\r\n";
const HTML: &str = "Content-Type: text/html";

/// A text that is compressed on a thread.
fn long_text() -> String {
    (0..3_000).map(|number| format!("{number} ")).collect()
}

/// Lets the server process what was sent to it, as far as it need not wait.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

/// The head and the decoded body of the only response of a connection.
async fn decoded(client: &TestClient) -> (String, String) {
    let bytes = client.receive_bytes_to_end().await;
    let end = memchr::memmem::find(&bytes, b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    assert!(head.contains("Content-Encoding: gzip\r\n"), "{head}");
    assert!(head.contains("Vary: Accept-Encoding\r\n"), "{head}");
    let body = match head.contains("Transfer-Encoding: chunked\r\n") {
        true => unchunked(&bytes[end..]),
        false => {
            let length = format!("Content-Length: {}\r\n", bytes.len() - end);
            assert!(head.contains(&length), "{head}");
            bytes[end..].to_vec()
        }
    };
    let mut text = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    (head, text)
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let end = memchr::memmem::find(body, b"\r\n").expect("the size of a chunk");
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return data;
        }
        data.extend_from_slice(&body[end + 2..][..size]);
        body = &body[end + 2 + size + 2..];
    }
}

fn get(site: &Site, path: &str, lines: &str) -> TestClient {
    let client = site.connect();
    client.send(request_text("GET", path, lines, ""));
    client
}

/// A site whose script is `/a.php`.
fn script_site() -> Site {
    Site::new(&[("a.php", "<?php"), ("a.txt", "a")], "compress = true")
}

#[test]
fn a_script_is_compressed_whole_or_in_pieces() {
    in_loop(async {
        let (site, text) = (script_site(), long_text());
        let client = get(&site, "/a.php", GZIP);
        site.next_php_request().await.respond(200, &[HTML], &text);
        let (head, body) = decoded(&client).await;
        assert!(head.contains("Content-Length: ") && body == text, "{head}");
        let client = get(&site, "/a.php", GZIP);
        let php = site.next_php_request().await;
        php.send_head(200, &[HTML]);
        for piece in ["first ", &text, "", "last"] {
            php.send_body(piece);
            php.flush();
            settle().await;
        }
        php.finish();
        let (head, body) = decoded(&client).await;
        assert!(head.contains("Transfer-Encoding: chunked") && body == format!("first {text}last"));
    });
}

#[test]
fn a_composed_page_is_compressed_whole_or_in_pieces() {
    in_loop(async {
        let text = long_text();
        let parts = ["file = \"/a.html\"", "script = \"/b.php\"", "text = \"end\""];
        let parts = parts.map(|part| format!("[[app.site.compose.part]]\n{part}\n")).concat();
        let keys = format!("compress = true\n[[app.site.compose]]\npath = \"/page\"\n{parts}");
        let site = Site::new(&[("a.html", &text), ("b.php", "<?php")], &keys);
        for is_flushed in [false, true] {
            let client = get(&site, "/page", GZIP);
            let php = site.next_php_request().await;
            php.send_head(200, &[HTML, "ETag: \"1\""]);
            if is_flushed {
                // The file before it is sent at once.
                php.flush();
                settle().await;
            }
            php.send_body(&text);
            php.finish();
            let (head, body) = decoded(&client).await;
            assert_eq!(head.contains("Transfer-Encoding: chunked"), is_flushed, "{head}");
            assert!(body == format!("{text}{text}end"), "{} bytes", body.len());
        }
        let plain = site.connect();
        plain.send(request_text("GET", "/page", "", ""));
        site.next_php_request().await.respond(200, &[HTML], &text);
        let plain = response(&plain.receive_to_end().await);
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
        assert!(plain.body == format!("{text}{text}end"));
    });
}

#[test]
fn responses_of_other_servers_are_compressed_unless_they_are() {
    in_loop(async {
        let text = long_text();
        let of_upstream = text.clone();
        let upstream = Upstream::start(move |request| match request.contains("/coded") {
            true => ok("Content-Encoding: gzip\r\nContent-Type: text/html\r\n", "(coded)"),
            false => ok("Content-Type: text/html\r\n", &of_upstream),
        });
        let keys = format!(
            "compress = true\n[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://127.0.0.1:{}\"\n",
            upstream.port
        );
        let site = Site::new(&[], &keys);
        let (_, body) = decoded(&get(&site, "/plain", GZIP)).await;
        assert!(body == text);
        let coded = site.request("GET", "/coded", GZIP, "").await;
        assert_eq!((coded.header("vary"), &coded.body[..]), (None, "(coded)"));
        let plain = site.get("/plain").await;
        assert!(plain.header("content-encoding").is_none() && plain.body == text);
    });
}

#[test]
fn other_requests_do_not_wait_for_a_compression() {
    in_loop(async {
        let (site, text) = (script_site(), long_text());
        let threads = BusyThreads::new();
        let slow = get(&site, "/a.php", GZIP);
        site.next_php_request().await.respond(200, &[HTML], &text);
        for _ in 0..10 {
            assert_eq!(site.get("/a.txt").await.body, "a");
        }
        // A short page needs no thread.
        let short = get(&site, "/a.php", GZIP);
        site.next_php_request().await.respond(200, &[HTML], &text[..4000]);
        assert!(decoded(&short).await.1 == text[..4000]);
        assert!(!slow.has_ended());
        drop(threads);
        assert!(decoded(&slow).await.1 == text);
    });
}

#[test]
fn a_client_that_leaves_does_not_wait_for_its_compression() {
    in_loop(async {
        let site = script_site();
        let threads = BusyThreads::new();
        let client = get(&site, "/a.php", GZIP);
        site.next_php_request().await.respond(200, &[HTML], long_text());
        assert_eq!(client.receive().await, "");
        drop(client);
        let server = site.gateway.server.clone();
        wait_for("its end", || (server.shared.open_connections() == 0).then_some(())).await;
        assert_eq!(site.refusals("client_gone"), 1);
        assert_eq!(site.app().memory.responses.held_bytes(), 0);
        drop(threads);
    });
}
