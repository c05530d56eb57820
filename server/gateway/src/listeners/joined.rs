//! The listeners of the other threads: their sockets are bound together with the lead's.
//!
//! Called by the server when a generation is activated on all threads. Invariant: a thread has a socket of
//! its own for each address of the apps, of the lead's making, so that a port is either all threads' or
//! none's.

use super::{Certificates, actual_address, context_of};
use crate::gateway::Gateway;
use outboard_config::{Config, ListenAddress, Listener};
use outboard_http_server::{BoundListener, Http3Socket, ListeningSocket, Role};
use outboard_log::Level;
use std::rc::Rc;

/// A listener for apps of another thread than the lead's.
pub(crate) struct JoinedListener {
    /// With the actual port.
    address: ListenAddress,
    /// Unless the thread has it already.
    socket: Option<ListeningSocket>,
    /// If it serves HTTP/3, unless the thread has it already.
    http3: Option<Http3Socket>,
    listener: Listener,
    certificates: Certificates,
}

/// The listeners for apps of one other thread, with those sockets that were bound for it and that it
/// does not have yet.
pub(crate) fn joined(
    gateway: &Gateway,
    config: &Config,
    certificates: &[Certificates],
) -> Vec<JoinedListener> {
    let mut sockets = gateway.sockets_for_others.borrow_mut();
    let mut http3 = gateway.http3_for_others.borrow_mut();
    let bound = gateway.listeners.borrow();
    let mut left: Vec<&Rc<BoundListener>> =
        bound.iter().filter(|bound| bound.role() == Role::Apps).collect();
    let mut joined = Vec::new();
    for (listener, certificates) in config.listeners.iter().zip(certificates) {
        let is_it = |bound: &&Rc<BoundListener>| bound.address == listener.address;
        let Some(at) = left.iter().position(is_it) else { continue };
        let bound = left.remove(at);
        let address = actual_address(bound);
        joined.push(JoinedListener {
            socket: next_of(&mut sockets, &address),
            http3: next_of(&mut http3, &address),
            address,
            listener: listener.clone(),
            certificates: certificates.clone(),
        });
    }
    sockets.retain(|(_, sockets)| !sockets.is_empty());
    http3.retain(|(_, sockets)| !sockets.is_empty());
    joined
}

/// The socket of one more thread, in the order in which they were bound: the kernel counts them so when it is told
/// how many serve.
fn next_of<T>(sockets: &mut [(ListenAddress, Vec<T>)], address: &ListenAddress) -> Option<T> {
    let left = &mut sockets.iter_mut().find(|(at, _)| at == address)?.1;
    (!left.is_empty()).then(|| left.remove(0))
}

/// Joins the listeners of the lead, reconfigures those that were joined before, and stops those that are
/// not configured any more.
pub(crate) fn join(gateway: &Rc<Gateway>, joined: Vec<JoinedListener>) {
    let mut present = std::mem::take(&mut *gateway.listeners.borrow_mut());
    for JoinedListener { address, socket, http3, listener, certificates } in joined {
        let context = context_of(&listener, certificates);
        let known = present.iter().position(|bound| actual_address(bound) == address);
        let bound = match (known.map(|at| present.remove(at)), socket) {
            (Some(bound), _) => {
                bound.set_context(context);
                Some(Ok(bound))
            }
            (None, Some(socket)) => Some(BoundListener::start(gateway, socket, context)),
            (None, None) => None,
        };
        let serving = |bound: Rc<BoundListener>| match http3 {
            Some(socket) => bound.serve_http3(gateway, socket).map(|()| bound),
            None => Ok(bound),
        };
        match bound.map(|bound| bound.and_then(serving)) {
            Some(Ok(bound)) => gateway.listeners.borrow_mut().push(bound),
            Some(Err(error)) => gateway.server.log(Level::Error, &error.to_string()),
            None => {}
        }
    }
    present.iter().for_each(|bound| bound.stop());
}
