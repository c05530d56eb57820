//! [`SessionFacts`]: what a handshake has negotiated, and who the client is.
//!
//! Created once per server session; its requests read it. Invariant: the variables are those of the
//! handshake alone, so that no header of a request can forge them, and they describe a client's certificate
//! only if it is valid.

use crate::client_certificate;
use crate::client_verification::{ClientVerification, reason};
use crate::server::{Chosen, ServerSettings};
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConnection};
use std::io;

/// See the module.
#[derive(Debug)]
pub struct SessionFacts {
    /// The certificate that the client got, if there is a choice.
    pub chosen: Option<Chosen>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'static str,
    /// The cipher suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The certificate of the client.
    pub client: ClientCertificate,
    variables: Vec<(&'static str, Box<str>)>,
}

/// What the handshake of a QUIC connection has negotiated.
#[derive(Debug, Clone, Copy)]
pub struct QuicSession<'a> {
    /// The server name that the client has sent.
    pub server_name: Option<&'a str>,
    /// The cipher suite.
    pub cipher: Option<CipherSuite>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The client's certificate and those of intermediate authorities.
    pub client_chain: &'a [CertificateDer<'a>],
}

/// Whether a client has authenticated itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificate {
    /// It has sent no certificate.
    Missing,
    /// Its certificate is not valid.
    Invalid,
    /// Its certificate is valid.
    Valid,
}

impl SessionFacts {
    /// The facts about a session whose handshake is complete.
    ///
    /// # Errors
    /// The session was resumed, and the required certificate is not valid any more.
    pub(crate) fn of(session: &ServerConnection, settings: &ServerSettings) -> io::Result<Self> {
        let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
        let suite = session.negotiated_cipher_suite().map(|suite| suite.suite());
        let mut facts = Self::new(
            settings.chosen(session.server_name()),
            protocol_name(session.protocol_version()),
            suite,
            is_resumed,
        );
        if let Some(clients) = &settings.clients {
            let chain = session.peer_certificates().unwrap_or_default();
            // The handshake of a new session has verified a required certificate already.
            facts.verify_client(chain, clients, clients.is_required && !is_resumed)?;
        }
        Ok(facts)
    }

    /// The facts about a session of QUIC, which has TLS 1.3.
    ///
    /// # Errors
    /// The required certificate is not valid any more.
    pub fn of_quic(session: &QuicSession<'_>, settings: &ServerSettings) -> io::Result<Self> {
        let chosen = settings.chosen(session.server_name);
        let protocol = protocol_name(Some(ProtocolVersion::TLSv1_3));
        let mut facts = Self::new(chosen, protocol, session.cipher, session.is_resumed);
        if let Some(clients) = &settings.clients {
            let is_verified = clients.is_required && !session.is_resumed;
            facts.verify_client(session.client_chain, clients, is_verified)?;
        }
        Ok(facts)
    }

    fn new(
        chosen: Option<Chosen>,
        protocol: &'static str,
        suite: Option<CipherSuite>,
        is_resumed: bool,
    ) -> Self {
        let cipher = suite.map_or("", cipher_name);
        let client = ClientCertificate::Missing;
        let mut facts =
            Self { chosen, protocol, cipher, is_resumed, client, variables: Vec::new() };
        facts.set("SSL_PROTOCOL", protocol);
        facts.set("SSL_CIPHER", cipher);
        facts.set("SSL_SESSION_RESUMED", if is_resumed { "Resumed" } else { "Initial" });
        facts
    }

    /// The variables of a request, by the names of mod_ssl.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.variables.iter().map(|(name, value)| (*name, &**value))
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.into()));
    }

    fn verify_client(
        &mut self,
        chain: &[CertificateDer<'_>],
        clients: &ClientVerification,
        is_verified: bool,
    ) -> io::Result<()> {
        let Some(first) = chain.first() else {
            self.set("SSL_CLIENT_VERIFY", "NONE");
            return Ok(());
        };
        let verified = if is_verified { Ok(()) } else { clients.verify(chain) };
        match verified {
            Ok(()) => {
                self.client = ClientCertificate::Valid;
                self.set("SSL_CLIENT_VERIFY", "SUCCESS");
                self.variables.extend(client_certificate::variables(first));
            }
            Err(error) if clients.is_required => return Err(io::Error::other(error)),
            Err(error) => {
                self.client = ClientCertificate::Invalid;
                self.set("SSL_CLIENT_VERIFY", &format!("FAILED:{}", reason(&error)));
            }
        }
        Ok(())
    }
}

fn protocol_name(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "",
    }
}

fn cipher_name(suite: CipherSuite) -> &'static str {
    use CipherSuite as Suite;
    match suite {
        Suite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        Suite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        Suite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        other => other.as_str().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_cipher_has_the_name_of_openssl() {
        for suite in rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES {
            let name = cipher_name(suite.suite());
            assert!(
                !name.is_empty() && !name.contains("WITH") && !name.contains("TLS13"),
                "{name}"
            );
        }
    }
}
