//! Offers to speak something else: nobody takes them, so the request is answered as it is.

use crate::{plain, plain_and_close, site};

const SERVER: &str = "/server.php?names=HTTP_UPGRADE,HTTP_CONNECTION,HTTP_SEC_WEBSOCKET_KEY";

#[test]
fn an_unsupported_upgrade_is_served_as_a_request() {
    let mut wire = site().wire();
    wire.send(format!(
        "GET {SERVER} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ));
    wire.expect_undated(&plain(
        "HTTP_UPGRADE=websocket\nHTTP_CONNECTION=Upgrade\n\
         HTTP_SEC_WEBSOCKET_KEY=dGhlIHNhbXBsZSBub25jZQ==\n",
    ));
    // It is HTTP/1.1 still.
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.expect_undated(&plain("Hello, world\n"));
}

/// RFC 9113, section 3.1: the way from cleartext HTTP/1.1 is obsolete.
#[test]
fn h2c_is_not_taken_up() {
    for target in ["/hello.php", "/file.txt"] {
        let mut wire = site().wire();
        wire.send(format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"
        ));
        let head = wire.head();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(!head.to_lowercase().contains("upgrade"), "{head}");
    }
}

#[test]
fn the_body_of_a_request_that_offers_an_upgrade_is_a_body() {
    let transcript = site().exchange(
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\
         Content-Length: 4\r\n\r\nbody",
    );
    assert_eq!(transcript, plain_and_close("POST /echo.php HTTP/1.1\nbody"));
}

/// Bytes behind the request are the next request, not the other protocol.
#[test]
fn bytes_behind_an_upgrade_offer_are_the_next_request() {
    let transcript = site().exchange(
        "GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\
         GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(transcript.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{transcript}");
    assert!(
        transcript.ends_with(&plain_and_close("Hello, world\n").split_once("\r\n\r\n").unwrap().1)
    );
}
