//! [`Client`]: a connection of HTTP/2 whose frames a test writes and reads (RFC 9113 4).
//!
//! Invariant: no read and no write takes longer than a minute.

use super::*;
use crate::abused::Abused;
use outboard_e2e::connect;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::ErrorKind;

/// What a client without TLS sends first (RFC 9113 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;

trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

/// See the module.
pub(super) struct Client {
    stream: Box<dyn Duplex>,
    received: Vec<u8>,
}

/// A frame of the server.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Client {
    /// One without TLS, which has sent the preface and these settings.
    pub(super) fn plain(site: &Abused, settings: &[u8]) -> Client {
        Client::begin(Box::new(connect(site.plain())), settings)
    }

    /// The same with TLS.
    pub(super) fn secure(site: &Abused, settings: &[u8]) -> Client {
        let name = ServerName::try_from("site").expect("a name");
        let session = ClientConnection::new(Arc::new(site.tls("h2")), name).expect("settings");
        Client::begin(Box::new(StreamOwned::new(session, connect(site.secure()))), settings)
    }

    /// Both.
    pub(super) fn both(site: &Abused, settings: &[u8]) -> [Client; 2] {
        [Client::plain(site, settings), Client::secure(site, settings)]
    }

    fn begin(stream: Box<dyn Duplex>, settings: &[u8]) -> Client {
        let mut client = Client { stream, received: Vec::new() };
        client.send(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat());
        client
    }

    /// Sends bytes; the server may have closed the connection.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    /// The next frame; `None` when the connection has ended, be it by a reset.
    #[track_caller]
    pub(super) fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    panic!("the server neither sends nor ends the connection");
                }
                Err(_) => return None,
            }
        }
    }

    fn take(&mut self) -> Option<Frame> {
        let &[a, b, c, kind, flags, ref stream @ ..] =
            self.received.first_chunk::<FRAME_HEAD_BYTES>()?;
        let end = FRAME_HEAD_BYTES + u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = self.received.get(FRAME_HEAD_BYTES..end)?.to_vec();
        let stream = u32::from_be_bytes(*stream);
        self.received.drain(..end);
        Some(Frame { kind, flags, stream, payload })
    }

    /// The error code of the server's last GOAWAY, once the connection has ended (RFC 9113 6.8).
    #[track_caller]
    pub(super) fn end(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                code = frame.payload[4..].first_chunk().map(|code| u32::from_be_bytes(*code));
            }
        }
        code
    }

    /// The body of the response on this stream, whose other frames are ignored.
    #[track_caller]
    pub(super) fn body(&mut self, stream: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let frame = self.next().expect("the response is complete");
            if frame.stream != stream {
                continue;
            }
            assert_ne!(frame.kind, RST_STREAM, "{frame:?}");
            if frame.kind == DATA {
                body.extend_from_slice(&frame.payload);
            }
            if frame.flags & END_STREAM != 0 {
                return body;
            }
        }
    }
}
