//! [`Quic`]: one connection of a client (RFC 9000) without I/O, by `quinn-proto`.
//!
//! Owned by an HTTP/3 session, and by the probe of a target. Each connection has a socket of its own, as
//! those of different clients have; therefore it needs no connection IDs (RFC 9000 5.1). Invariants:
//! nothing waits; after each call the owner sends what [`Quic::take_datagrams`] returns, and calls
//! [`Quic::expire`] at [`Quic::wake_at`].

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, IdleTimeout, RandomConnectionIdGenerator, ReadError, StreamEvent, StreamId,
    TransportConfig, VarInt, WriteError,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Datagrams that are encrypted at a time.
const BATCH: usize = 16;
/// Large, so that no response waits for permission to continue.
const STREAM_WINDOW_BYTES: u32 = 16 << 20;
/// For a server that is gone without a word, in the handshake too; longer than the limits of servers,
/// which are theirs to apply.
const IDLE_TIMEOUT_MS: u32 = 120_000;
/// HTTP/3 needs three; a server may probe with others (RFC 9114 6.2.3).
const UNIDIRECTIONAL_STREAMS: u32 = 16;

/// The settings of all connections of a run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
}

impl Settings {
    /// With the trust and the protocol of `tls`.
    pub(crate) fn new(tls: Arc<rustls::ClientConfig>) -> Result<Self, String> {
        let tls = QuicClientConfig::try_from(tls).map_err(|error| error.to_string())?;
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(0_u32.into())
            .max_concurrent_uni_streams(UNIDIRECTIONAL_STREAMS.into())
            .stream_receive_window(STREAM_WINDOW_BYTES.into())
            .receive_window(VarInt::MAX)
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
            .datagram_receive_buffer_size(None);
        let mut client = ClientConfig::new(Arc::new(tls));
        client.transport_config(Arc::new(transport));
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        Ok(Self { endpoint: Arc::new(endpoint), client })
    }
}

/// What has happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The handshake is complete.
    Connected,
    /// A stream has data, its end or a reset.
    Readable(u64),
    /// A stream accepts data again.
    Writable(u64),
    /// The server reads no more of a stream.
    Stopped(u64),
    /// Streams can be opened again.
    Available,
    /// The connection is gone.
    Lost(ConnectionError),
}

/// What a stream has to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read<'a> {
    Bytes(&'a [u8]),
    End,
    /// By an error code of the application.
    Reset(u64),
}

/// See the module.
pub(crate) struct Quic {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    inner: Connection,
    server: SocketAddr,
}

impl Quic {
    /// Begins the handshake; `None` for an address or a name that cannot be connected to.
    pub(crate) fn connect(settings: &Settings, server: SocketAddr, name: &str) -> Option<Self> {
        let mut endpoint = Endpoint::new(settings.endpoint.clone(), None, true, None);
        let (handle, inner) =
            endpoint.connect(Instant::now(), settings.client.clone(), server, name).ok()?;
        Some(Self { endpoint, handle, inner, server })
    }

    /// Reads a datagram of the server.
    pub(crate) fn receive(&mut self, datagram: &[u8]) {
        let (now, data) = (Instant::now(), BytesMut::from(datagram));
        // What the endpoint itself would send concerns other connections.
        let mut reply = Vec::new();
        let event = self.endpoint.handle(now, self.server, None, None, data, &mut reply);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.inner.handle_event(event);
        }
    }

    /// Replaces `out` by the next datagrams to send, and returns the length of each but the last.
    pub(crate) fn take_datagrams(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(event);
            }
        }
        out.clear();
        let transmit = self.inner.poll_transmit(Instant::now(), BATCH, out)?;
        out.truncate(transmit.size);
        Some(transmit.segment_size.unwrap_or(transmit.size).max(1))
    }

    /// When [`Self::expire`] is due.
    pub(crate) fn wake_at(&mut self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    /// Handles the timers that have expired.
    pub(crate) fn expire(&mut self) {
        self.inner.handle_timeout(Instant::now());
    }

    /// Closes the connection with an error code of the application.
    pub(crate) fn close(&mut self, code: u64) {
        self.inner.close(Instant::now(), varint(code), bytes::Bytes::new());
    }

    /// The next event; that the connection is gone is the last one.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(id) = self.inner.streams().accept(Dir::Uni) {
                return Some(Event::Readable(id.into()));
            }
            return Some(match self.inner.poll()? {
                quinn_proto::Event::Connected => Event::Connected,
                quinn_proto::Event::ConnectionLost { reason } => Event::Lost(reason),
                quinn_proto::Event::Stream(event) => match event {
                    StreamEvent::Readable { id } => Event::Readable(id.into()),
                    StreamEvent::Writable { id } => Event::Writable(id.into()),
                    StreamEvent::Stopped { id, .. } => Event::Stopped(id.into()),
                    StreamEvent::Available { dir: Dir::Bi } => Event::Available,
                    _ => continue,
                },
                _ => continue,
            });
        }
    }

    /// Passes on what a stream has to read, until `on_read` returns false.
    pub(crate) fn read(&mut self, stream_id: u64, mut on_read: impl FnMut(Read<'_>) -> bool) {
        let mut stream = self.inner.recv_stream(id(stream_id));
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) if on_read(Read::Bytes(&chunk.bytes)) => continue,
                Ok(None) => _ = on_read(Read::End),
                Err(ReadError::Reset(code)) => _ = on_read(Read::Reset(code.into_inner())),
                Ok(Some(_)) | Err(ReadError::Blocked) => {}
            }
            break;
        }
        // Permission to send more goes out with the next datagrams.
        let _ = chunks.finalize();
    }

    /// Opens a stream; `None` if the server allows no more now.
    pub(crate) fn open(&mut self, dir: Dir) -> Option<u64> {
        self.inner.streams().open(dir).map(Into::into)
    }

    /// Writes to a stream; how many bytes were accepted, all of one that the server does not read.
    pub(crate) fn write(&mut self, stream_id: u64, bytes: &[u8]) -> usize {
        let mut stream = self.inner.send_stream(id(stream_id));
        let mut count = 0;
        while count < bytes.len() {
            match stream.write(&bytes[count..]) {
                Ok(accepted) => count += accepted,
                // Only such a write has the stream reported as writable later.
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return bytes.len(),
            }
        }
        count
    }

    /// Ends a stream after what was written; nothing happens if the server does not read it.
    pub(crate) fn finish(&mut self, stream_id: u64) {
        let _ = self.inner.send_stream(id(stream_id)).finish();
    }

    /// Sends nothing more on a stream, and reads no more of it; nothing happens to a part that is
    /// closed.
    pub(crate) fn abandon(&mut self, stream_id: u64, code: u64) {
        self.reset(stream_id, code);
        let _ = self.inner.recv_stream(id(stream_id)).stop(varint(code));
    }

    /// Sends nothing more on a stream.
    pub(crate) fn reset(&mut self, stream_id: u64, code: u64) {
        let _ = self.inner.send_stream(id(stream_id)).reset(varint(code));
    }
}

fn id(stream_id: u64) -> StreamId {
    StreamId::from(varint(stream_id))
}

fn varint(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}
