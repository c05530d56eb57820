//! The beginning of a TLS connection, up to where HTTP begins.
//!
//! Called by the listener for each connection of an address with certificates. Invariant: it takes no
//! longer than a request's head may.

use crate::answer::write_within;
use crate::gateway::Gateway;
use crate::pace::Pace;
use crate::wire::Wire;
use outboard_reactor::{Stream, now_ms, share_turn, with_deadline};
use outboard_tls::{Chosen, ServerSettings, Session};
use rustix::fd::AsFd;
use rustix::net::{RecvFlags, recv};
use std::io::{self, IoSlice};
use std::sync::Arc;

/// What a handshake begins with (RFC 8446 5.1).
const HANDSHAKE: u8 = 22;

/// What a client chose to speak.
pub(super) enum Spoken {
    Http1(Wire),
    Http2(Box<Session>),
}

/// Shakes hands.
///
/// # Errors
/// Why there is no session; who spoke HTTP has been told.
pub(super) async fn of(
    gateway: &Gateway,
    stream: Stream,
    settings: Arc<ServerSettings>,
) -> Result<(Spoken, Option<Chosen>), String> {
    let timeout_ms = gateway.limits().header_timeout_ms;
    let until_ms = now_ms() + timeout_ms;
    let too_long = |_| format!("not within {timeout_ms} ms");
    let first = with_deadline(until_ms, first_byte(&stream)).await.map_err(too_long)?;
    if first.map_err(|error| error.to_string())? != HANDSHAKE {
        // Whoever is gone has not waited for it.
        let mut pace = Pace::of_response(&gateway.limits());
        let slices = &mut [IoSlice::new(PLAIN)];
        let _ = write_within(&Wire::Plain(stream), slices, &mut pace).await;
        return Err("it speaks something else".to_owned());
    }
    // Of a flood of clients that only begin, one a turn is worked on.
    share_turn(HANDSHAKE_BYTES).await;
    let session = with_deadline(until_ms, Session::accept(stream, &settings)).await;
    let session = session.map_err(too_long)?.map_err(|error| error.to_string())?;
    let chosen = settings.chosen(session.server_name());
    let spoken = match session.is_http2() {
        true => Spoken::Http2(Box::new(session)),
        false => Spoken::Http1(Wire::encrypted(session)),
    };
    Ok((spoken, chosen))
}

/// Looks at what comes without taking it.
async fn first_byte(stream: &Stream) -> io::Result<u8> {
    loop {
        stream.source().readable().await;
        let mut byte = [0];
        match recv(stream.as_fd(), &mut byte, RecvFlags::PEEK) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(byte[0]),
            Err(rustix::io::Errno::AGAIN) => stream.source().clear_readable(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What a handshake takes, as bytes that are moved: all of a turn.
const HANDSHAKE_BYTES: usize = 1 << 20;

const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\nConnection: close\r\n\r\n\
    This address speaks HTTPS: write https://...\n";
