//! [`Client`]: a connection of QUIC whose streams and datagrams a test chooses (RFC 9000).
//!
//! Used by the tests of HTTP/3 and of datagrams. Invariants: it sends and receives only in
//! [`Client::turn`]; no wait takes longer than [`PATIENCE`].

use crate::abused::Abused;
use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, RandomConnectionIdGenerator, ReadError, StreamId, TransportConfig,
    VarInt, WriteError,
};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Only a broken server needs it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait for a datagram.
const TURN: Duration = Duration::from_millis(20);

/// What the network makes of the datagrams of a turn.
pub(crate) type Network = fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>;

/// See the module.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) network: Network,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    server: SocketAddr,
    socket: UdpSocket,
    is_connected: bool,
    lost: Option<ConnectionError>,
}

/// The settings of clients of this server.
pub(crate) fn settings(site: &Abused, transport: TransportConfig) -> ClientConfig {
    let tls = QuicClientConfig::try_from(site.tls("h3")).expect("TLS 1.3");
    let mut settings = ClientConfig::new(Arc::new(tls));
    settings.transport_config(Arc::new(transport));
    settings
}

impl Client {
    /// A connection whose handshake is complete.
    #[track_caller]
    pub(crate) fn connect(site: &Abused) -> Client {
        Client::connect_with(site, settings(site, TransportConfig::default()))
    }

    /// The same with other settings.
    #[track_caller]
    pub(crate) fn connect_with(site: &Abused, settings: ClientConfig) -> Client {
        let mut client = Client::begin(site, settings);
        client.until("the handshake is complete", |client| client.is_connected.then_some(()));
        client
    }

    /// A connection whose handshake has not begun.
    #[track_caller]
    pub(crate) fn begin(site: &Abused, settings: ClientConfig) -> Client {
        let mut config = EndpointConfig::default();
        config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        let mut endpoint = Endpoint::new(Arc::new(config), None, true, None);
        let server = site.secure();
        let begun = endpoint.connect(Instant::now(), settings, server, "site");
        let (handle, connection) = begun.expect("a name and an address");
        let network: Network = |datagrams| datagrams;
        let (is_connected, lost) = (false, None);
        let socket = socket();
        Client { connection, network, endpoint, handle, server, socket, is_connected, lost }
    }

    /// Moves to another port (RFC 9000 9).
    pub(crate) fn migrate(&mut self) {
        self.socket = socket();
    }

    /// Sends what is to be sent, and receives for a short while.
    pub(crate) fn turn(&mut self) {
        let datagrams = self.outgoing();
        for datagram in (self.network)(datagrams) {
            // One that does not arrive is lost, as datagrams may be.
            let _ = self.socket.send_to(&datagram, self.server);
        }
        self.receive();
        self.connection.handle_timeout(Instant::now());
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
    }

    /// The datagrams that are to be sent now.
    pub(crate) fn outgoing(&mut self) -> Vec<Vec<u8>> {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        let mut datagrams = Vec::new();
        let mut datagram = Vec::new();
        while self.connection.poll_transmit(Instant::now(), 1, &mut datagram).is_some() {
            datagrams.push(std::mem::take(&mut datagram));
        }
        datagrams
    }

    /// Receives all that is there, after a wait for the first.
    fn receive(&mut self) {
        let now = Instant::now();
        let due = self.connection.poll_timeout().unwrap_or(now + TURN);
        let wait = due.saturating_duration_since(now).clamp(Duration::from_millis(1), TURN);
        self.socket.set_read_timeout(Some(wait)).expect("the time-out is not zero");
        let mut piece = [0; 65_536];
        while let Ok((count, _)) = self.socket.recv_from(&mut piece) {
            let (now, data) = (Instant::now(), BytesMut::from(&piece[..count]));
            let event = self.endpoint.handle(now, self.server, None, None, data, &mut Vec::new());
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
            self.socket.set_nonblocking(true).expect("a socket has the option");
        }
        self.socket.set_nonblocking(false).expect("a socket has the option");
    }

    /// Goes on until something is so.
    #[track_caller]
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Client) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}: {:?}", self.lost);
            self.turn();
        }
    }

    /// Opens a stream as soon as the server allows it; `None` if the connection is lost.
    #[track_caller]
    pub(crate) fn open(&mut self, dir: Dir) -> Option<StreamId> {
        self.until("a stream is allowed", |client| match client.lost {
            Some(_) => Some(None),
            None => client.connection.streams().open(dir).map(Some),
        })
    }

    /// Writes to a stream as soon as the server allows it, or reads no more of it.
    #[track_caller]
    pub(crate) fn write(&mut self, stream: StreamId, bytes: &[u8]) {
        let mut left = bytes;
        self.until("the bytes are accepted", |client| {
            while !left.is_empty() && client.lost.is_none() {
                match client.connection.send_stream(stream).write(left) {
                    Ok(count) => left = &left[count..],
                    Err(WriteError::Blocked) => return None,
                    Err(_) => break,
                }
            }
            Some(())
        });
    }

    /// Ends a stream.
    pub(crate) fn finish(&mut self, stream: StreamId) {
        let _ = self.connection.send_stream(stream).finish();
    }

    /// Opens a stream with these bytes, and ends it.
    #[track_caller]
    pub(crate) fn send(&mut self, dir: Dir, bytes: &[u8]) -> Option<StreamId> {
        let stream = self.open(dir)?;
        self.write(stream, bytes);
        self.finish(stream);
        Some(stream)
    }

    /// Resets a stream, and reads no more of it.
    pub(crate) fn abandon(&mut self, stream: StreamId) {
        let _ = self.connection.send_stream(stream).reset(VarInt::from_u32(0));
        let _ = self.connection.recv_stream(stream).stop(VarInt::from_u32(0));
    }

    /// What arrives on a stream until its end, or the code that it is reset with; `each` is called
    /// before each turn.
    #[track_caller]
    pub(crate) fn response(
        &mut self,
        stream: StreamId,
        mut each: impl FnMut(&mut Client),
    ) -> Result<Vec<u8>, u64> {
        let mut bytes = Vec::new();
        self.until("a response", |client| {
            assert_eq!(client.lost, None, "after {} bytes", bytes.len());
            let mut part = client.connection.recv_stream(stream);
            let mut chunks = part.read(true).expect("it is read only here");
            let end = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => bytes.extend_from_slice(&chunk.bytes),
                    Ok(None) => break Some(Ok(std::mem::take(&mut bytes))),
                    Err(ReadError::Blocked) => break None,
                    Err(ReadError::Reset(code)) => break Some(Err(code.into_inner())),
                }
            };
            let _ = chunks.finalize();
            if end.is_none() {
                each(client);
            }
            end
        })
    }

    /// Whether the connection is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// The error code that the server ends the connection with.
    #[track_caller]
    pub(crate) fn end(&mut self) -> u64 {
        let reason = self.until("the end of the connection", |client| client.lost.clone());
        match reason {
            ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
            ConnectionError::ConnectionClosed(close) => close.error_code.into(),
            other => panic!("no end by the server: {other:?}"),
        }
    }
}

/// A free port, from which the server on another loopback address is reached.
fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a free port")
}
