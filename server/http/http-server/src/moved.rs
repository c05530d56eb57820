//! [`MovedConnection`]: a connection on its way to another shard, between two requests.
//!
//! Made by [`crate::http1`] where the service wants it elsewhere, and served by the thread that receives it. Invariants:
//! no byte of it is lost or read twice; it counts as open, and has its places, all the way; if it is dropped on the way
//! the client sees an end, as after any response.

use crate::client::Client;
use crate::connection::Connection;
use crate::connections::MovedEntry;
use crate::listener_context::ListenerContext;
use crate::peer::MovedPeer;
use crate::server_context::ServerContext;
use crate::transport::Transport;
use outboard_reactor::Stream;
use rustix::fd::OwnedFd;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct MovedConnection {
    socket: OwnedFd,
    peer: MovedPeer,
    listener: Arc<ListenerContext>,
    entry: MovedEntry,
    /// What has been read of the next request.
    input: Vec<u8>,
    served: u32,
    stays: bool,
}

impl MovedConnection {
    /// The connection on this thread.
    ///
    /// # Errors
    /// The event loop cannot watch the socket.
    pub(crate) fn arrive(self, server: Rc<ServerContext>) -> io::Result<Connection> {
        let Self { socket, peer, listener, entry, input, served, stays } = self;
        let transport = Transport::Plain(Stream::new(socket)?);
        let account = server.memory.connections();
        let entry = entry.enter(&server.connections, &server.limits(), account);
        let client = Client::new(server, listener, transport, peer.into_info(), entry);
        let mut connection = Connection::new(client);
        connection.resume(input, served, stays);
        Ok(connection)
    }
}

impl Connection {
    /// Takes it from this thread; `stays`: it is to stay where it arrives. The caller has asked
    /// [`Connection::can_move`].
    pub(crate) fn into_moved(self, stays: bool) -> MovedConnection {
        debug_assert!(self.can_move(), "a part of it is elsewhere");
        let served = self.served();
        let (client, input, _) = self.into_rest();
        let client = Rc::into_inner(client).expect("nobody else has it, as was checked");
        let Client { listener, peer, transport, entry, .. } = client;
        let Transport::Plain(stream) = transport else {
            unreachable!("only connections without TLS can move, as was checked")
        };
        let (peer, entry) = (peer.into_moved(), entry.into_moved());
        let socket = stream.into_socket();
        MovedConnection { socket, peer, listener, entry, input, served, stays }
    }
}

#[cfg(test)]
mod tests;
