//! Whom a TLS client trusts, as settings of rustls.
//!
//! Called by the upstream client and by the load generator, which keep the settings and make a
//! session of them for each connection. Invariant: certificates are checked unless the caller says
//! otherwise, and signatures in any case.

use crate::anyone::Anyone;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Whose certificates are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust<'a> {
    /// Those that the system's authorities signed, or those of this PEM file. `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` name the system's.
    Authorities(Option<&'a Path>),
    /// Anybody's, as `curl --insecure` does.
    Anyone,
}

/// Settings for sessions that offer these protocols, the best one first (RFC 7301). Reads the
/// authorities' certificates, which takes a while.
///
/// # Errors
/// What is wrong with the certificates, and where.
pub fn client_settings(trust: Trust<'_>, protocols: &[&[u8]]) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut settings = match trust {
        Trust::Authorities(more) => {
            let authorities = Arc::new(authorities(more)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(authorities, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            builder.with_webpki_verifier(verifier).with_no_client_auth()
        }
        Trust::Anyone => {
            let anyone = Arc::new(Anyone::checking(provider.signature_verification_algorithms));
            builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth()
        }
    };
    settings.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(settings)
}

fn authorities(more: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = more {
        let broken = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| broken(&error))? {
            let certificate = certificate.map_err(|error| broken(&error))?;
            roots.add(certificate).map_err(|error| broken(&error))?;
        }
    }
    if roots.is_empty() {
        return Err("no certificate authorities are installed; install ca-certificates".into());
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_offered_in_their_order() {
        let settings = client_settings(Trust::Anyone, &[b"h2", b"http/1.1"]).expect("no files");
        assert_eq!(settings.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let path = Path::new("/nowhere/authorities.pem");
        let error =
            client_settings(Trust::Authorities(Some(path)), &[]).expect_err("it is missing");
        assert!(error.contains("/nowhere/authorities.pem"), "{error}");
    }
}
