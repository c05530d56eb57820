//! HTTP/3 beside a listener: the UDP sockets of all threads on its port.
//!
//! Called at start, and by a reload: before anything changes to bind, and after it to serve. Invariant: a
//! reload whose UDP port is not free changes nothing.

use super::actual_address;
use crate::gateway::Gateway;
use outboard_http_server::{BindError, BoundListener, Http3Socket, ListenerContext};
use std::rc::Rc;

/// Binds a socket for each thread, if the settings ask for HTTP/3 and the listener has none.
///
/// # Errors
/// The port is not free.
pub(super) fn bind_missing(
    gateway: &Gateway,
    bound: &BoundListener,
    context: &ListenerContext,
) -> Result<Vec<Http3Socket>, BindError> {
    if !bound.lacks_http3(context) {
        return Ok(Vec::new());
    }
    bound.http3_sockets(gateway.share.count, &gateway.sockets.borrow())
}

/// Serves the first socket on this thread; the others are for the other threads.
///
/// # Errors
/// The event loop cannot watch the socket.
pub(super) fn serve(
    gateway: &Rc<Gateway>,
    bound: &Rc<BoundListener>,
    sockets: Vec<Http3Socket>,
) -> Result<(), BindError> {
    let mut sockets = sockets.into_iter();
    let Some(first) = sockets.next() else { return Ok(()) };
    bound.serve_http3(gateway, first)?;
    let others = (actual_address(bound), sockets.collect());
    gateway.http3_for_others.borrow_mut().push(others);
    Ok(())
}
