//! [`Service`]: what responds to the requests that this server reads.

use crate::connection::Connection;
use crate::connections::Entry as ConnectionEntry;
use crate::listener_context::{ListenerContext, StreamPort};
use crate::peer::PeerInfo;
use crate::response_writer::Written;
use crate::server_context::ServerContext;
use crate::upgrade::Upgraded;
use outboard_log::{Reason, Wall};
use outboard_reactor::Stream;
use std::net::IpAddr;
use std::rc::Rc;

/// Responds to requests. The server is generic over it, so that no call is indirect.
pub trait Service: Sized + 'static {
    /// What all connections share.
    fn context(&self) -> &Rc<ServerContext>;

    /// Writes one response to the request whose head is in the connection's input.
    fn respond(
        self: &Rc<Self>,
        connection: &mut Connection,
        started: Wall,
    ) -> impl Future<Output = Written>;

    /// Writes a response to a request whose head could not be read; `detail` is a closer reason.
    fn refuse_head(
        self: &Rc<Self>,
        connection: &mut Connection,
        started: Wall,
        reason: Reason,
        detail: &str,
    ) -> impl Future<Output = Written>;

    /// Serves a raw connection until it ends. By default it is closed.
    fn serve_stream(
        self: &Rc<Self>,
        port: &StreamPort,
        stream: Upgraded,
        peer: PeerInfo,
        entry: ConnectionEntry,
    ) -> impl Future<Output = ()> {
        drop((port, stream, peer, entry));
        std::future::ready(())
    }

    /// Why not to accept a connection of a client's address; `None` as the address of a peer on a Unix
    /// socket.
    fn refuses(&self, listener: &ListenerContext, address: Option<IpAddr>) -> Option<Reason> {
        let _ = (listener, address);
        None
    }

    /// Whether to serve a connection that a listener has accepted.
    fn admits(&self, listener: &ListenerContext, stream: &Stream) -> bool {
        let _ = (listener, stream);
        true
    }
}
