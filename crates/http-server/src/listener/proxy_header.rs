//! The header of the PROXY protocol at the start of a connection, before TLS.
//!
//! Called by the listener for connections of peers that have to send one. Invariants: it takes no longer
//! than a request's head may; no byte of what follows is read; without a valid header the connection is
//! closed, because the peer's own address would be that of all clients.

use crate::server_context::ServerContext;
use outboard_proxy_protocol::{Addresses, Malformed, Step, read};
use outboard_reactor::{Stream, now_ms, with_deadline};
use std::io;

/// Receives the header. `None`: the connection is the proxy's own.
///
/// # Errors
/// Why there is none.
pub(super) async fn receive(
    context: &ServerContext,
    stream: &Stream,
) -> Result<Option<Addresses>, String> {
    let timeout_ms = context.limits().header_timeout_ms;
    let received = with_deadline(now_ms() + timeout_ms, receive_all(stream)).await;
    let received = received.map_err(|_| format!("no PROXY header within {timeout_ms} ms"))?;
    received.map_err(|error| error.to_string())
}

async fn receive_all(stream: &Stream) -> io::Result<Option<Addresses>> {
    let mut received = Vec::new();
    loop {
        let malformed = |error: Malformed| io::Error::new(io::ErrorKind::InvalidData, error);
        let needed = match read(&received).map_err(malformed)? {
            Step::Complete(addresses) => return Ok(addresses),
            Step::Need(needed) => needed,
        };
        while received.len() < needed {
            let mut piece = Vec::with_capacity(needed - received.len());
            if stream.read(&mut piece).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received.append(&mut piece);
        }
    }
}
