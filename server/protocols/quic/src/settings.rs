//! [`Settings`]: TLS and the limits of connections.
//!
//! Created by the application at start and at each reload. Invariant: what a client may send before it has
//! proven anything is bounded.

use crate::session::ServerTls;
use crate::tokens::{self, Tokens};
use quinn_proto::{IdleTimeout, ServerConfig, TransportConfig, ValidationTokenConfig, VarInt};
use std::fmt;
use std::sync::Arc;

/// Unidirectional streams that a client may have open: HTTP/3 needs three, and a client may probe with
/// others (RFC 9114 6.2.3).
const UNIDIRECTIONAL_STREAMS: u32 = 16;
/// New connections that wait for the endpoint; there is one at a time.
const INCOMING: usize = 64;
/// What is stored for them.
const INCOMING_BYTES: u64 = 16 << 10;
/// The largest flight of a handshake, with a chain of client certificates.
const CRYPTO_BYTES: usize = 64 << 10;

/// Tokens that a client gets for its next connections.
const TOKENS_SENT: u32 = 2;

/// See the module.
#[derive(Debug, Clone)]
pub struct Settings {
    /// TLS 1.3 with the application protocols. With early data, an application must not process twice what
    /// arrives while [`crate::Connection::is_handshaking`], nor trust the address of the client then, unless
    /// [`crate::Connection::has_proven_address`].
    pub tls: Arc<rustls::ServerConfig>,
    /// Bidirectional streams that a client may have open.
    pub max_streams: u32,
    /// What a client may send on a stream before the application reads it.
    pub stream_window_bytes: u32,
    /// What a client may send on all streams before the application reads it.
    pub connection_window_bytes: u32,
    /// What is stored of all streams until the client acknowledges it.
    pub send_window_bytes: u64,
    /// How long a connection may be silent (RFC 9000 10.1).
    pub idle_timeout_ms: u64,
}

/// The TLS settings cannot be used.
#[derive(Debug)]
pub struct InvalidSettings(&'static str);

impl fmt::Display for InvalidSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidSettings {}

impl Settings {
    /// The same for the protocol's implementation.
    pub(crate) fn of_server(&self, tokens: &Tokens) -> Result<Arc<ServerConfig>, InvalidSettings> {
        if !matches!(self.tls.max_early_data_size, 0 | u32::MAX) {
            return Err(InvalidSettings("early data is bounded by windows alone (RFC 9001 4.6.1)"));
        }
        let tls = ServerTls::new(self.tls.clone())
            .map_err(|_| InvalidSettings("QUIC needs TLS_AES_128_GCM_SHA256 (RFC 9001 5)"))?;
        let mut config = ServerConfig::new(Arc::new(tls), tokens.key.clone());
        config
            .transport_config(Arc::new(self.transport()))
            .max_incoming(INCOMING)
            .incoming_buffer_size(INCOMING_BYTES)
            .incoming_buffer_size_total(INCOMING as u64 * INCOMING_BYTES);
        if self.tls.max_early_data_size > 0 {
            let mut validation = ValidationTokenConfig::default();
            validation.lifetime(tokens::LIFETIME).log(tokens.used.clone()).sent(TOKENS_SENT);
            config.validation_token_config(validation);
        }
        Ok(Arc::new(config))
    }

    fn transport(&self) -> TransportConfig {
        let idle = VarInt::from_u64(self.idle_timeout_ms).unwrap_or(VarInt::MAX);
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(self.max_streams.into())
            .max_concurrent_uni_streams(UNIDIRECTIONAL_STREAMS.into())
            .stream_receive_window(self.stream_window_bytes.into())
            .receive_window(self.connection_window_bytes.into())
            .send_window(self.send_window_bytes)
            .max_idle_timeout(Some(IdleTimeout::from(idle)))
            .crypto_buffer_size(CRYPTO_BYTES)
            .datagram_receive_buffer_size(None);
        transport
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::settings;
    use aws_lc_rs::hkdf;

    fn tokens() -> Tokens {
        let key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&[7; 32]);
        Tokens { key: Arc::new(key), used: Arc::default() }
    }

    fn with_tls(change: impl FnOnce(&mut rustls::ServerConfig)) -> Settings {
        let mut settings = settings();
        change(Arc::make_mut(&mut settings.tls));
        settings
    }

    #[test]
    fn early_data_is_bounded_by_windows_or_not_accepted() {
        for (bytes, is_valid) in [(0, true), (u32::MAX, true), (1, false), (16_384, false)] {
            let settings = with_tls(|tls| tls.max_early_data_size = bytes);
            let of_server = settings.of_server(&tokens());
            let error = of_server.err().map(|error| error.to_string());
            let text = "early data is bounded by windows alone (RFC 9001 4.6.1)";
            assert_eq!(error, (!is_valid).then(|| text.to_owned()), "{bytes}");
        }
    }

    #[test]
    fn tls_without_the_suite_of_the_first_packets_is_rejected() {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let resolver = settings().tls.cert_resolver.clone();
        let tls = builder.with_no_client_auth().with_cert_resolver(resolver);
        let settings = Settings { tls: Arc::new(tls), ..settings() };
        let error = settings.of_server(&tokens()).unwrap_err();
        assert_eq!(error.to_string(), "QUIC needs TLS_AES_128_GCM_SHA256 (RFC 9001 5)");
        assert!(std::error::Error::source(&error).is_none());
    }

    #[test]
    fn an_idle_timeout_beyond_what_quic_can_say_is_the_longest() {
        let longest = Settings { idle_timeout_ms: u64::MAX, ..settings() };
        assert!(longest.of_server(&tokens()).is_ok());
    }
}
