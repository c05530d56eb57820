//! The header of the PROXY protocol at the start of a connection, before TLS.
//!
//! Called by the listener for connections of peers that have to send one. Invariants: it takes no longer
//! than a request's head may; no byte of what follows is read; without a valid header the connection is
//! closed, because the peer's own address would be that of all clients.

use crate::connections::Entry;
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::proxy_protocol::{Addresses, Malformed, Step, read};
use crate::server_context::ServerContext;
use crate::service::Service;
use outboard_log::Reason;
use outboard_reactor::{Stream, now_ms, with_deadline};
use std::io;
use std::rc::Rc;

/// Replaces the peer, a proxy, by the client that its PROXY header names; false if the client is refused.
pub(super) async fn name_client<S: Service>(
    service: &Rc<S>,
    listener: &ListenerContext,
    stream: &Stream,
    (peer, entry): (&mut PeerInfo, &mut Entry),
) -> bool {
    let server = service.context();
    let header = match entry.while_idle(receive(server, stream)).await {
        None => return false,
        Some(header) => header,
    };
    match header {
        Ok(None) => return true,
        Ok(Some(addresses)) => *peer = PeerInfo::behind_proxy(&addresses),
        Err(why) => {
            server.reject(&format!("{} ({why})", peer.text), Reason::ProxyHeader);
            return false;
        }
    }
    let reason = service.refuses(listener, peer.ip()).or_else(|| {
        let address = listener.limited_address(peer.address);
        entry.leave_listener();
        let limits = listener.limits.as_ref();
        let counted = server.connections.open_at(limits, address, &server.limits());
        counted.map(|counted| *entry = counted).is_none().then_some(Reason::TooManyConnections)
    });
    if let Some(reason) = reason {
        server.reject(&peer.text, reason);
    }
    reason.is_none()
}

/// Receives the header. `None`: the connection is the proxy's own.
///
/// # Errors
/// Why there is none.
async fn receive(context: &ServerContext, stream: &Stream) -> Result<Option<Addresses>, String> {
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
