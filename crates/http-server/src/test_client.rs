//! [`TestClient`]: a client over an in-memory pipe, for unit tests of services.
//!
//! Compiled for tests, and with the feature `testing` for those of other crates.

use crate::connection::Connection;
use crate::connections::Kind;
use crate::http1;
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::service::Service;
use crate::transport::Transport;
use crate::transport::pipe::Pipe;
use outboard_reactor::{Peer, sleep, spawn, yield_now};
use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;

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
        let context = service.context().clone();
        let entry = context.connections.open(Kind::Connection, None, &context.limits());
        let entry = entry.expect("the limit of connections is not reached");
        let transport = Transport::http2(server, None);
        let peer = PeerInfo::new(peer);
        let connection = Connection::new(context, Rc::new(listener), transport, peer, entry);
        let has_ended = Rc::new(Cell::new(false));
        let (service, ended) = (service.clone(), has_ended.clone());
        spawn(async move {
            http1::serve(service, connection).await;
            ended.set(true);
        });
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
        let mut all = String::new();
        for _ in 0..MAX_WAIT_MS / 5 {
            all += &self.read_available();
            if self.has_ended.get() {
                return all + &self.read_available();
            }
            sleep(5).await;
        }
        panic!("the connection has not ended; it sent {all:?}");
    }

    /// Whether the server has closed the connection.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    fn read_available(&self) -> String {
        let mut bytes = Vec::new();
        self.pipe.try_read(&mut bytes);
        self.pipe.release();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
