//! [`ClientVerification`]: whether the certificates of clients are valid.
//!
//! Part of the settings of a listener. Invariants: a required certificate is verified in the handshake;
//! every other decision, and that about the certificate of a resumed session, is made when the handshake is
//! complete, with the time and the revocation lists of now; the client always owns the certificate's key.

use crate::options::{ClientAuthorities, Open, invalid};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use std::io::BufReader;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct ClientVerification {
    strict: Arc<dyn ClientCertVerifier>,
    pub(crate) is_required: bool,
}

impl ClientVerification {
    pub(crate) fn read(
        files: &ClientAuthorities,
        provider: Arc<CryptoProvider>,
        open: Open<'_>,
    ) -> Result<Self, String> {
        let path = &files.authorities;
        let file = open(path).map_err(|error| invalid(path, &error))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_reader_iter(BufReader::new(file)) {
            let certificate = certificate.map_err(|error| invalid(path, &error))?;
            roots.add(certificate).map_err(|error| invalid(path, &error))?;
        }
        if roots.is_empty() {
            return Err(invalid(path, &"there is no certificate in it"));
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .enforce_revocation_expiration();
        if let Some(path) = &files.revoked {
            let file = open(path).map_err(|error| invalid(path, &error))?;
            let lists = CertificateRevocationListDer::pem_reader_iter(BufReader::new(file));
            let lists: Vec<_> =
                lists.collect::<Result<_, _>>().map_err(|error| invalid(path, &error))?;
            if lists.is_empty() {
                return Err(invalid(path, &"there is no revocation list in it"));
            }
            builder = builder.with_crls(lists);
        }
        let of = files.revoked.as_ref().unwrap_or(path);
        let strict = builder.build().map_err(|error| invalid(of, &error))?;
        Ok(Self { strict, is_required: files.are_required })
    }

    /// The verifier of handshakes.
    pub(crate) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        match self.is_required {
            true => self.strict.clone(),
            false => Arc::new(Lenient(self.strict.clone())),
        }
    }

    /// Verifies a client's certificate and those of intermediate authorities.
    pub(crate) fn verify(&self, chain: &[CertificateDer<'_>]) -> Result<(), Error> {
        let (first, rest) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        self.strict.verify_client_cert(first, rest, UnixTime::now()).map(drop)
    }
}

/// The reason in OpenSSL's words where it has some, as programs read it in `SSL_CLIENT_VERIFY`.
pub(crate) fn reason(error: &Error) -> String {
    let Error::InvalidCertificate(why) = error else { return error.to_string() };
    let words = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not yet valid"
        }
        CertificateError::Revoked => "certificate revoked",
        CertificateError::UnknownIssuer => "unable to get local issuer certificate",
        CertificateError::BadSignature => "certificate signature failure",
        CertificateError::UnknownRevocationStatus => "unable to get certificate CRL",
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => "CRL has expired",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "unsuitable certificate purpose"
        }
        other => return other.to_string(),
    };
    words.to_owned()
}

/// Requests a certificate and accepts any, which is verified later.
#[derive(Debug)]
struct Lenient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Lenient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
