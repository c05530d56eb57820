//! [`Service`]: what responds to the requests that this server reads.

use crate::direct::DirectAnswer;
use crate::listener_context::ListenerContext;
use crate::moved::MovedConnection;
use crate::request::Request;
use crate::response_facts::Written;
use crate::response_writer::ResponseWriter;
use crate::server_context::ServerContext;
use crate::upgrade::Upgraded;
use outboard_log::{Reason, Wall};
use outboard_reactor::Stream;
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

/// Responds to requests. The server is generic over it, so that no call is indirect.
pub trait Service: Sized + 'static {
    /// What all connections share.
    fn context(&self) -> &Rc<ServerContext>;

    /// Writes one response to a request.
    fn respond(
        self: &Rc<Self>,
        request: &mut Request,
        response: &mut ResponseWriter,
        started: Wall,
    ) -> impl Future<Output = Written>;

    /// Writes a response to a request whose head could not be read, with a closer reason.
    fn refuse_head(
        self: &Rc<Self>,
        request: &Request,
        response: &mut ResponseWriter,
        started: Wall,
        refusal: (Reason, &str),
    ) -> impl Future<Output = Written>;

    /// Another process has answered a request, whose head is there. Returns whether the connection may stay there.
    fn answered_directly(self: &Rc<Self>, request: &mut Request, answer: DirectAnswer) -> bool {
        let _ = (request, answer);
        false
    }

    /// The shard where a connection without TLS waits for its next request; `None`: here. `seen` is the service's own, for
    /// as long as the connection is here.
    fn shard_after_response(&self, seen: &Cell<u64>) -> Option<usize> {
        let _ = seen;
        None
    }

    /// The shard for a connection that cannot move any more; `None`: here.
    fn shard_to_stay(&self) -> Option<usize> {
        None
    }

    /// Sends a connection to one of these shards.
    fn send_to(self: &Rc<Self>, shard: usize, connection: MovedConnection) {
        let _ = shard;
        drop(connection);
    }

    /// Serves a raw connection until it ends. By default it is closed.
    fn serve_stream(self: &Rc<Self>, stream: Upgraded) -> impl Future<Output = ()> {
        drop(stream);
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
