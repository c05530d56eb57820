//! The TLS handshake of a connection.
//!
//! Called by the listener. Invariant: it takes no longer than a request's head may.

use crate::pace::Pace;
use crate::server_context::ServerContext;
use crate::transport::Transport;
use outboard_reactor::{Stream, now_ms, share_turn, sleep, with_deadline};
use outboard_tls::{ServerSettings, Session, SessionFacts};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The type of the first record of a handshake (RFC 8446 5.1).
const HANDSHAKE: u8 = 22;

/// The pause between two looks whether a certificate has been obtained, or its name was refused.
const AWAIT_MS: u64 = 50;

/// The fatal alert unrecognized_name (RFC 6066 3), in a record of its own: there are no keys yet.
const UNRECOGNIZED_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];

/// The protocol that was negotiated (RFC 7301).
pub(super) enum Negotiated {
    Http1(Transport),
    Http2(Transport),
}

/// Performs the handshake.
///
/// # Errors
/// Why there is no session. A client that sent plain HTTP has received a response.
pub(super) async fn perform(
    context: &ServerContext,
    stream: Stream,
    settings: Arc<ServerSettings>,
    client: Option<IpAddr>,
) -> Result<(Negotiated, Rc<SessionFacts>), String> {
    let timeout_ms = context.limits().header_timeout_ms;
    let until_ms = now_ms() + timeout_ms;
    let too_long = |_| format!("not within {timeout_ms} ms");
    let received = with_deadline(until_ms, first_bytes(&stream)).await.map_err(too_long)?;
    let received = received.map_err(|error| error.to_string())?;
    if received.first() != Some(&HANDSHAKE) {
        refuse(context, stream, PLAIN).await;
        return Err("the client does not use TLS".to_owned());
    }
    if let Some((issued, name)) = settings.missing_name(&received) {
        let mut is_awaited = issued.request(&name, client);
        while is_awaited && now_ms() < until_ms {
            sleep(AWAIT_MS).await;
            is_awaited = issued.is_awaited(&name);
        }
        if issued.find(&name).is_none() {
            refuse(context, stream, UNRECOGNIZED_NAME).await;
            return Err(format!("there is no certificate for {}", name.escape_debug()));
        }
    }
    let session = Session::accept_received(stream, received, &settings);
    let session = with_deadline(until_ms, session).await;
    let (session, facts) = session.map_err(too_long)?.map_err(|error| error.to_string())?;
    if session.is_challenge() {
        return Err("an authority has checked a name; no request follows".to_owned());
    }
    context.counters.borrow_mut().established(&facts);
    let negotiated = match session.is_http2() {
        true => Negotiated::Http2(Transport::encrypted(session)),
        false => Negotiated::Http1(Transport::encrypted(session)),
    };
    Ok((negotiated, Rc::new(facts)))
}

/// Sends this instead of a handshake. The client may be gone.
async fn refuse(context: &ServerContext, stream: Stream, bytes: &[u8]) {
    let mut pace = Pace::of_response(&context.limits());
    let _ = Transport::Plain(stream).write_all(&mut [IoSlice::new(bytes)], &mut pace).await;
}

/// Reads what the client has sent first, when it is this connection's turn.
async fn first_bytes(stream: &Stream) -> io::Result<Vec<u8>> {
    loop {
        stream.source().readable().await;
        // A handshake is much work: one per turn of the event loop.
        share_turn(HANDSHAKE_BYTES).await;
        let mut received = Vec::with_capacity(FIRST_BYTES);
        match stream.try_read(&mut received)? {
            Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(_) => return Ok(received),
            None => {}
        }
    }
}

/// Most first flights of clients have less, also with a post-quantum key share.
const FIRST_BYTES: usize = 4 << 10;

/// The work of a handshake, as bytes moved: a whole turn.
const HANDSHAKE_BYTES: usize = 1 << 20;

const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\nConnection: close\r\n\r\n\
    This address speaks HTTPS: write https://...\n";
