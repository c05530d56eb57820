//! [`Tls`]: the settings of all TLS connections of a run (RFC 8446), by rustls.
//!
//! Sessions are resumed where the server allows it, as browsers do; every thread has the same
//! settings, so the tickets of one serve all.

use crate::plan::Plan;
use crate::target::Protocol;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// How connections are secured.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    settings: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// The settings of the plan, if its target wants TLS.
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>, String> {
        let Some(name) = &plan.target.tls_name else { return Ok(None) };
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut settings = if plan.verify_tls {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            builder.with_webpki_verifier(verifier).with_no_client_auth()
        } else {
            let anyone = Anyone { algorithms: provider.signature_verification_algorithms };
            let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(anyone));
            builder.with_no_client_auth()
        };
        let protocol = match plan.target.protocol {
            Protocol::Http2 => b"h2".to_vec(),
            Protocol::Http1 | Protocol::FastCgi => b"http/1.1".to_vec(),
        };
        settings.alpn_protocols = vec![protocol];
        let name =
            ServerName::try_from(name.clone()).map_err(|error| format!("{name}: {error}"))?;
        Ok(Some(Self { settings: Arc::new(settings), name }))
    }

    /// A new session.
    pub(crate) fn session(&self) -> Option<Box<ClientConnection>> {
        let session = ClientConnection::new(self.settings.clone(), self.name.clone());
        let mut session = session.ok()?;
        // A request is handed over whole; what the socket does not take waits in our own buffer.
        session.set_buffer_limit(None);
        Some(Box::new(session))
    }
}

/// Takes any certificate; signatures are checked all the same, so that the work is the same too.
#[derive(Debug)]
struct Anyone {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
