//! [`ServerTls`] and [`Session`]: TLS 1.3 of a connection, by `rustls::quic`.
//!
//! Called by `quinn-proto`, whose own session reports neither the cipher suite nor whether a session was
//! resumed. Packet and header protection are its own; [`Session`] moves the messages of the handshake between
//! the two. Invariant: what the handshake has negotiated is reported once both sides have chosen it.

use crate::connection::Negotiated;
use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig as _,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{self, KeyChange, Secrets, ServerConnection, Version};
use std::any::Any;
use std::sync::Arc;

/// The settings of the sessions of a listener.
pub(crate) struct ServerTls {
    rustls: Arc<rustls::ServerConfig>,
    /// For the first packets, whose keys are known to all (RFC 9001 5.2), and retries.
    initial: Arc<QuicServerConfig>,
}

impl ServerTls {
    pub(crate) fn new(rustls: Arc<rustls::ServerConfig>) -> Result<Self, NoInitialCipherSuite> {
        let initial = Arc::new(QuicServerConfig::try_from(rustls.clone())?);
        Ok(Self { rustls, initial })
    }
}

impl crypto::ServerConfig for ServerTls {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.initial.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.initial.retry_tag(version, id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        let tls_version = if is_draft(version) { Version::V1Draft } else { Version::V1 };
        let tls = ServerConnection::new(self.rustls.clone(), tls_version, encoded).expect(
            "the settings have TLS 1.3 and a suite for QUIC, and early data is all or none",
        );
        Box::new(Session { settings: self, version, tls, next: None, is_reported: false })
    }
}

/// Drafts 29 to 32, which `quinn-proto` accepts too.
fn is_draft(version: u32) -> bool {
    (0xff00_001d..=0xff00_0020).contains(&version)
}

/// See the module.
struct Session {
    settings: Arc<ServerTls>,
    version: u32,
    tls: ServerConnection,
    /// What the keys after the next key update are derived from.
    next: Option<Secrets>,
    /// Whether `quinn-proto` was notified of what was negotiated.
    is_reported: bool,
}

impl Session {
    /// The error that ends the connection.
    fn failure(&self, error: &rustls::Error) -> TransportError {
        let alert = self.tls.alert().map(|alert| TransportErrorCode::crypto(alert.into()));
        let code = alert.unwrap_or(TransportErrorCode::PROTOCOL_VIOLATION);
        TransportError { code, frame: None, reason: error.to_string() }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, id: &ConnectionId, _: Side) -> Keys {
        let keys = self.settings.initial.initial_keys(self.version, id);
        keys.unwrap_or_else(|_| unreachable!("the session was started with this version"))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let suite = self.tls.negotiated_cipher_suite()?;
        Some(Box::new(Negotiated {
            protocol: self.tls.alpn_protocol().map(<[u8]>::to_vec).unwrap_or_default(),
            server_name: self.tls.server_name().map(str::to_owned),
            cipher: Some(suite.suite()),
            is_resumed: self.tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
            client_chain: Vec::new(),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain = self.tls.peer_certificates()?;
        let chain: Vec<_> = chain.iter().map(|one| one.clone().into_owned()).collect();
        Some(Box::new(chain))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    /// For clients.
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.tls.read_hs(bytes).map_err(|error| self.failure(&error))?;
        let is_known = self.tls.negotiated_cipher_suite().is_some();
        Ok(is_known && !std::mem::replace(&mut self.is_reported, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut encoded) = self.tls.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Server, &mut encoded)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.tls.write_hs(out)? {
            KeyChange::Handshake { keys } => Some(boxed(keys)),
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                Some(boxed(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// For clients.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    /// For protocols other than HTTP/3.
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn boxed(keys: quic::Keys) -> Keys {
    let quic::Keys { local, remote } = keys;
    Keys {
        header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
        packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::settings;

    const VERSION_1: u32 = 1;

    fn tls() -> Arc<ServerTls> {
        Arc::new(ServerTls::new(settings().tls).unwrap())
    }

    fn session(version: u32) -> Box<dyn crypto::Session> {
        let parameters = TransportParameters::read(Side::Server, &mut &[][..]).unwrap();
        tls().start_session(version, &parameters)
    }

    #[test]
    fn only_the_drafts_that_the_protocol_accepts_are_drafts() {
        for (version, expected) in [
            (0, false),
            (VERSION_1, false),
            (0xff00_001c, false),
            (0xff00_001d, true),
            (0xff00_0020, true),
            (0xff00_0021, false),
            (u32::MAX, false),
        ] {
            assert_eq!(is_draft(version), expected, "{version:#x}");
        }
    }

    #[test]
    fn bytes_that_are_not_tls_end_the_connection_with_a_reason() {
        for bytes in
            [&[0xff; 64][..], &[1, 0, 0, 2, 3, 3], &[2, 0, 0, 0], b"GET / HTTP/1.1\r\n\r\n"]
        {
            let mut session = session(VERSION_1);
            let error = session.read_handshake(bytes).unwrap_err();
            let code = u64::from(error.code);
            // An alert (RFC 9001 4.8), or PROTOCOL_VIOLATION (RFC 9000 20.1).
            assert!(code == 0xa || (0x100..0x200).contains(&code), "{bytes:?}: {code:#x}");
            assert!(!error.reason.is_empty() && error.frame.is_none());
            assert!(session.is_handshaking() && session.handshake_data().is_none());
        }
    }

    #[test]
    fn nothing_is_negotiated_before_the_first_message_is_whole() {
        let mut session = session(VERSION_1);
        assert_eq!(session.read_handshake(&[1, 0, 1, 0, 3, 3]), Ok(false));
        assert!(session.handshake_data().is_none() && session.peer_identity().is_none());
        assert!(session.early_crypto().is_none() && session.next_1rtt_keys().is_none());
        assert!(matches!(session.transport_parameters(), Ok(None)));
        assert!(session.write_handshake(&mut Vec::new()).is_none());
    }

    #[test]
    fn what_only_clients_do_is_not_done() {
        let session = session(VERSION_1);
        assert_eq!(session.early_data_accepted(), None);
        let id = ConnectionId::new(&[7; 8]);
        let packet = [0; 40];
        let tag = tls().retry_tag(VERSION_1, &id, &packet);
        assert!(!session.is_valid_retry(&id, &packet, &tag));
        assert!(session.export_keying_material(&mut [0; 8], b"label", b"context").is_err());
    }
}
