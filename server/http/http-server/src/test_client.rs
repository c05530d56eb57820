//! [`TestClient`]: a client over an in-memory pipe, for unit tests of services.
//!
//! Compiled for tests, and with the feature `testing` for those of other crates.

use crate::client::Client;
use crate::connection::Connection;
use crate::connections::Kind;
use crate::http1;
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::service::Service;
use crate::transport::Transport;
use crate::transport::pipe::Pipe;
use outboard_reactor::{Peer, Stream, sleep, spawn, yield_now};
use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

/// The turns of the event loop after which a server that does not wait for sockets has responded.
const TURNS: usize = 20;
/// The bound of waiting for the end of a connection.
const MAX_WAIT_MS: u64 = 10_000;

/// See the module.
#[derive(Debug)]
pub struct TestClient {
    pipe: Pipe,
    has_ended: Rc<Cell<bool>>,
}

impl TestClient {
    /// Connects to a service, whose end of the connection is served by a task.
    ///
    /// # Panics
    /// The service accepts no more connections.
    pub fn connect<S: Service>(service: &Rc<S>, listener: ListenerContext, peer: Peer) -> Self {
        let (pipe, server) = Pipe::pair();
        pipe.widen(1 << 20);
        server.widen(1 << 20);
        let has_ended = Rc::new(Cell::new(false));
        serve(service, listener, Transport::pipe(server), peer, has_ended.clone());
        Self { pipe, has_ended }
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// The server has closed the connection, or the pipe is full.
    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let written = self.pipe.try_write(&[IoSlice::new(bytes)]).expect("the server reads");
        assert_eq!(written, Some(bytes.len()));
    }

    /// Reads the bytes that the server sends without waiting for a socket or a timer.
    pub async fn receive(&self) -> String {
        for _ in 0..TURNS {
            yield_now().await;
        }
        self.read_available()
    }

    /// Reads until the server has closed the connection.
    ///
    /// # Panics
    /// The server does not close it within ten seconds.
    pub async fn receive_to_end(&self) -> String {
        String::from_utf8_lossy(&self.receive_bytes_to_end().await).into_owned()
    }

    /// The same for bytes that are not text.
    ///
    /// # Panics
    /// As [`TestClient::receive_to_end`].
    pub async fn receive_bytes_to_end(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for _ in 0..MAX_WAIT_MS / 5 {
            let has_ended = self.has_ended.get();
            self.read_bytes(&mut all);
            if has_ended {
                return all;
            }
            sleep(5).await;
        }
        panic!("the connection has not ended; it sent {:?}", String::from_utf8_lossy(&all));
    }

    /// Whether the server has closed the connection.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    fn read_available(&self) -> String {
        let mut bytes = Vec::new();
        self.read_bytes(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn read_bytes(&self, to: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        self.pipe.try_read(&mut bytes);
        self.pipe.release();
        to.append(&mut bytes);
    }
}

/// Serves a connection without TLS, whose client has the other end of the socket.
///
/// # Panics
/// The service accepts no more connections.
pub fn serve_socket<S: Service>(
    service: &Rc<S>,
    listener: ListenerContext,
    socket: Stream,
    peer: Peer,
) {
    serve(service, listener, Transport::Plain(socket), peer, Rc::default());
}

fn serve<S: Service>(
    service: &Rc<S>,
    listener: ListenerContext,
    transport: Transport,
    peer: Peer,
    has_ended: Rc<Cell<bool>>,
) {
    let context = service.context().clone();
    let entry = context.connections.open(Kind::Connection, None, &context.limits());
    let mut entry = entry.expect("the limit of connections is not reached");
    entry.hold(context.memory.connections().hold(1));
    let peer = PeerInfo::new(peer);
    let client = Client::new(context, Arc::new(listener), transport, peer, entry);
    let connection = Connection::new(client);
    let service = service.clone();
    spawn(async move {
        http1::serve(service, connection).await;
        has_ended.set(true);
    });
}
