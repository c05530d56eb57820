//! The sockets of datagrams of a gateway: those that a configuration names, and those that are bound.
//!
//! Called by the server at start and reload, and when it stops. Invariants: a socket that the old and
//! the new configuration name is never closed; if a new address cannot be bound, nothing changes.

use crate::gateway::Gateway;
use crate::streams::{is_datagram, receiver};
use outboard_config::{ListenAddress, Listener};
use outboard_http_server::{BindError, StreamPort};
use outboard_stream_server::{BoundDatagram, Receive};
use std::rc::Rc;

/// Binds the addresses of datagrams that are not bound yet.
///
/// # Errors
/// An address cannot be bound.
pub(crate) fn bind_new(
    gateway: &Rc<Gateway>,
    configured: &[Listener],
) -> Result<Vec<Rc<BoundDatagram>>, BindError> {
    let weak = Rc::downgrade(gateway);
    let receive: Receive = Rc::new(move |port: &StreamPort, bytes| {
        let server = weak.upgrade().and_then(|gateway| gateway.generation().streams(&port.app));
        if let Some(server) = server {
            server.enqueue_packet(port.port, bytes);
        }
    });
    let mut fresh: Vec<Rc<BoundDatagram>> = Vec::new();
    let present = gateway.datagrams.borrow();
    for listener in configured.iter().filter(|one| is_datagram(one)) {
        let Some(receiver) = receiver(listener) else { continue };
        if present.iter().any(|bound| is_same(bound, &listener.address, &receiver)) {
            continue;
        }
        match BoundDatagram::start(
            &gateway.sockets.borrow(),
            listener.address.clone(),
            receiver,
            receive.clone(),
        ) {
            Ok(bound) => fresh.push(bound),
            Err(error) => {
                fresh.iter().for_each(|bound| bound.stop());
                return Err(error);
            }
        }
    }
    Ok(fresh)
}

fn is_same(bound: &BoundDatagram, address: &ListenAddress, receiver: &StreamPort) -> bool {
    bound.address == *address && bound.receiver() == *receiver
}

/// Adds the new sockets and stops those that are not configured any more.
pub(crate) fn take_over(gateway: &Gateway, configured: &[Listener], fresh: Vec<Rc<BoundDatagram>>) {
    let mut sockets = gateway.datagrams.borrow_mut();
    sockets.retain(|bound| {
        let is_configured = configured.iter().filter(|one| is_datagram(one)).any(|one| {
            receiver(one).is_some_and(|receiver| is_same(bound, &one.address, &receiver))
        });
        if !is_configured {
            bound.stop();
        }
        is_configured
    });
    sockets.extend(fresh);
}

/// The apps of the active generation learn of their sockets.
pub(crate) fn share(gateway: &Gateway) {
    let sockets = gateway.datagrams.borrow();
    for app in &gateway.generation().apps {
        if let Some(server) = &app.streams {
            let own = sockets.iter().filter(|one| one.receiver().app == app.config.name);
            server.set_datagrams(own.cloned().collect());
        }
    }
}

/// Stops receiving.
pub(crate) fn stop(gateway: &Gateway) {
    gateway.datagrams.borrow().iter().for_each(|bound| bound.stop());
}
