//! Requests that end at once: they cost a client nothing, and their streams count as open no longer.

use super::client::{Client, settings};
use super::*;
use crate::abused::Abused;
use quinn_proto::{Dir, StreamId, TransportConfig, VarInt};

/// Ten times what a client may do at once.
const MOST: u64 = 2_000;
/// Of each response: what arrives must not fill the client's socket, or the end of the connection is lost.
const WINDOW_BYTES: u32 = 16;

/// Opens streams until the server has enough; the code that it closes the connection with.
#[track_caller]
fn end_of(site: &Abused, request: &[u8], then: impl Fn(&mut Client, StreamId)) -> u64 {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW_BYTES.into());
    let mut client = Client::connect_with(site, settings(site, transport));
    while let Some(stream) = client.open(Dir::Bi) {
        client.write(stream, request);
        client.turn();
        then(&mut client, stream);
        assert!(stream.index() < MOST, "the server does not mind");
        if client.is_lost() {
            break;
        }
    }
    client.end()
}

/// CVE-2023-44487.
#[test]
fn requests_that_are_reset_at_once_end_the_connection() {
    let site = Abused::start();
    let get = request(GET, "/hello.php");
    assert_eq!(end_of(&site, &get, Client::abandon), EXCESSIVE_LOAD);
    // Before a byte of the request.
    assert_eq!(end_of(&site, &[], Client::abandon), EXCESSIVE_LOAD);
    // Only the response is given up.
    let stop = |client: &mut Client, stream| {
        client.finish(stream);
        let _ = client.connection.recv_stream(stream).stop(VarInt::from_u32(0));
    };
    let large = request(GET, "/large.txt");
    assert_eq!(end_of(&site, &large, stop), EXCESSIVE_LOAD);
    site.ends_unharmed("HTTP/3 resets");
}

/// CVE-2025-8671 names it for HTTP/2: the server is the one that resets.
#[test]
fn resets_that_a_client_provokes_end_the_connection() {
    let site = Abused::start();
    // The stream ends for both sides, as RFC 9000 3.5 wants of the client.
    let follow = |client: &mut Client, stream| {
        client.until("the server resets it", |client| {
            let reset = client.connection.recv_stream(stream).received_reset();
            (client.is_lost() || !matches!(reset, Ok(None))).then_some(())
        });
        let _ = client.connection.send_stream(stream).reset(VarInt::from_u32(0));
    };
    let more = [post_of("1"), frame(DATA, b"two")].concat();
    assert_eq!(end_of(&site, &more, follow), EXCESSIVE_LOAD);
    let malformed = frame(HEADERS, &[0, 0]);
    assert_eq!(end_of(&site, &malformed, follow), EXCESSIVE_LOAD);
    site.ends_unharmed("HTTP/3 provoked resets");
}
