//! Streams and connections that end in any way, by either side.

use super::peer::{Peer, serve, until};
use super::*;

/// The client's stream, on which it has sent these bytes.
fn open(peer: &mut Peer, bytes: &'static [u8]) -> quinn_proto::StreamId {
    peer.until(|connection, _| {
        let id = connection.streams().open(Dir::Bi)?;
        assert_eq!(connection.send_stream(id).write(bytes), Ok(bytes.len()));
        Some(id)
    })
}

#[test]
fn both_sides_know_each_other_and_what_was_negotiated() {
    let (served, client) = serve(
        settings(),
        async |endpoint, connection| {
            assert_eq!(connection.open_unidirectional(), None, "the client has allowed none yet");
            until(&connection, |event| (event == Some(Event::Connected)).then_some(())).await;
            assert_eq!(endpoint.open_connections(), 1);
            let negotiated = connection.negotiated();
            let addresses = (connection.remote_address(), connection.local_address());
            assert_eq!(addresses.1, endpoint.local_address());
            assert!(!connection.has_proven_address() && !connection.is_handshaking());
            connection.close(7, "enough");
            (negotiated, addresses.0)
        },
        |server| {
            let mut peer = Peer::connect(server, 0);
            let reason = peer.until_lost();
            assert!(reason.contains("enough") && reason.contains('7'), "{reason}");
            peer.local_address()
        },
    );
    let (negotiated, remote) = served;
    assert_eq!(remote, client);
    assert!(negotiated.cipher.is_some());
    let expected = Negotiated {
        protocol: PROTOCOL.to_vec(),
        server_name: Some("localhost".to_owned()),
        cipher: negotiated.cipher,
        ..Negotiated::default()
    };
    assert_eq!(negotiated, expected);
}

#[test]
fn a_stream_that_the_client_resets_is_read_to_its_error_once() {
    serve(
        settings(),
        async |_, connection| {
            let mut out = Vec::new();
            let code = until(&connection, |_| match connection.read(0, &mut out) {
                Read::Reset(code) => Some(code),
                _ => None,
            });
            assert_eq!(code.await, 77);
            assert_eq!(connection.read(0, &mut out), Read::Closed);
            connection.stop(0, 1);
            connection.close(0, "");
        },
        |server| {
            let mut peer = Peer::connect(server, 0);
            let id = open(&mut peer, b"half");
            peer.until(|connection, _| connection.send_stream(id).reset(VarInt::from_u32(77)).ok());
            peer.until_lost();
        },
    );
}

#[test]
fn a_stream_that_the_client_stops_accepts_nothing_more() {
    serve(
        settings(),
        async |_, connection| {
            let id = until(&connection, |_| connection.open_unidirectional()).await;
            assert_eq!(connection.open_unidirectional(), None, "the client allows one");
            assert_eq!(connection.write(id, b"body"), Ok(4));
            connection.flush();
            let stopped = until(&connection, |event| match event {
                Some(Event::Stopped(id, code)) => Some((id, code)),
                _ => None,
            });
            assert_eq!(stopped.await, (id, 5));
            assert_eq!(connection.write(id, b"more"), Err(StreamClosed));
            assert_eq!(connection.finish(id).unwrap_err().to_string(), "the stream is closed");
            connection.reset(id, u64::MAX);
            connection.close(0, "");
        },
        |server| {
            let mut peer = Peer::connect(server, 1);
            peer.until(|connection, _| {
                let id = connection.streams().accept(Dir::Uni)?;
                connection.recv_stream(id).stop(VarInt::from_u32(5)).ok()
            });
            peer.until_lost();
        },
    );
}

#[test]
fn streams_that_do_not_exist_are_closed() {
    serve(
        settings(),
        async |_, connection| {
            until(&connection, |event| (event == Some(Event::Connected)).then_some(())).await;
            // Beyond the limit of the client, of this side, and the largest.
            for id in [4 * u64::from(settings().max_streams), 1, 1 << 61] {
                let mut out = Vec::new();
                assert_eq!(connection.read(id, &mut out), Read::Closed, "{id}");
                assert_eq!(connection.write(id, b"body"), Err(StreamClosed), "{id}");
                assert_eq!(connection.finish(id), Err(StreamClosed), "{id}");
                connection.reset(id, 0);
                connection.stop(id, 0);
            }
            connection.close(0, "");
        },
        |server| drop(Peer::connect(server, 0).until_lost()),
    );
}

#[test]
fn a_client_has_no_more_streams_than_the_settings_allow() {
    serve(
        Settings { max_streams: 2, ..settings() },
        async |_, connection| {
            until(&connection, |event| matches!(event, Some(Event::Closed(_))).then_some(())).await;
            assert_eq!(connection.next_event(), None, "nothing follows the end");
        },
        |server| {
            let mut peer = Peer::connect(server, 0);
            peer.until(|connection, _| {
                let mut open = || connection.streams().open(Dir::Bi);
                assert!(open().is_some() && open().is_some());
                assert_eq!(open(), None);
                connection.close(Instant::now(), VarInt::from_u32(3), b"done".to_vec().into());
                Some(())
            });
        },
    );
}

#[test]
fn a_client_that_is_silent_is_given_up_and_its_place_is_free() {
    serve(
        Settings { idle_timeout_ms: 200, ..settings() },
        async |endpoint, connection| {
            let reason = until(&connection, |event| match event {
                Some(Event::Closed(reason)) => Some(reason),
                _ => None,
            });
            assert_eq!(reason.await, "timed out");
            while endpoint.open_connections() > 0 {
                outboard_reactor::yield_now().await;
            }
        },
        |server| drop(Peer::connect(server, 0)),
    );
}

#[test]
fn settings_that_cannot_be_used_leave_those_before() {
    serve(
        settings(),
        async |endpoint, connection| {
            until(&connection, |event| (event == Some(Event::Connected)).then_some(())).await;
            let mut invalid = settings();
            Arc::make_mut(&mut invalid.tls).max_early_data_size = 1;
            assert!(endpoint.set(&invalid).is_err());
            assert!(endpoint.set(&Settings { max_streams: 1, ..settings() }).is_ok());
            connection.close(0, "");
        },
        |server| drop(Peer::connect(server, 0).until_lost()),
    );
}
