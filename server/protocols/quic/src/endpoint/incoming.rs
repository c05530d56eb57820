//! New connections: whether they are accepted, validated or refused.
//!
//! Called by the endpoint for the first datagram of a client. Invariant: with many handshakes under way only
//! clients that have proven their address take memory (RFC 9000 8.1.2).

use super::Shared;
use crate::connection::Connection;
use quinn_proto::Incoming;
use std::rc::{Rc, Weak};
use std::time::Instant;

/// With so many handshakes that are not complete, a client has to prove its address.
const VALIDATED_FROM: usize = 32;
/// So many at most.
const HANDSHAKES_MAX: usize = 512;

/// Decides.
pub(crate) fn decide(shared: &Rc<Shared>, incoming: Incoming, buffer: &mut Vec<u8>) {
    let handshakes = shared.handshakes.get();
    let is_unproven = !incoming.remote_address_validated() && incoming.may_retry();
    if shared.is_stopped() || !shared.application.admits(incoming.remote_address()) {
        let refusal = shared.proto.borrow_mut().refuse(incoming, buffer);
        shared.socket.send(&refusal, buffer);
    } else if handshakes >= VALIDATED_FROM && is_unproven {
        let retry = shared.proto.borrow_mut().retry(incoming, buffer);
        match retry {
            Ok(retry) => shared.socket.send(&retry, buffer),
            Err(error) => shared.proto.borrow_mut().ignore(error.into_incoming()),
        }
    } else if handshakes >= HANDSHAKES_MAX {
        shared.proto.borrow_mut().ignore(incoming);
    } else {
        accept(shared, incoming, buffer);
    }
}

fn accept(shared: &Rc<Shared>, incoming: Incoming, buffer: &mut Vec<u8>) {
    let is_proven = incoming.remote_address_validated();
    let accepted = shared.proto.borrow_mut().accept(incoming, Instant::now(), buffer, None);
    match accepted {
        Ok((handle, inner)) => {
            let weak: Weak<Shared> = Rc::downgrade(shared);
            let connection =
                Rc::new(Connection::new(weak, handle, inner, shared.socket.local, is_proven));
            shared.connections.borrow_mut().insert(handle.0, connection.clone());
            shared.handshakes.set(shared.handshakes.get() + 1);
            shared.application.accepted(connection);
            shared.mark_ready(handle);
        }
        Err(error) => {
            shared.application.failed();
            if let Some(response) = error.response {
                shared.socket.send(&response, buffer);
            }
        }
    }
}
