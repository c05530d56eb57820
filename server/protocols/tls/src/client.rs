//! TLS client settings: which certificates are trusted.
//!
//! Used by the upstream client and by the load generator, which make a session of them for each
//! connection. Invariant: certificates are verified unless the caller asks for
//! [`Trust::DangerousNoVerification`]; signatures are always verified.

use crate::no_verification::DangerousNoVerification;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Which certificates are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust<'a> {
    /// Those signed by the system's authorities or by those of this PEM file. `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` select the system's.
    Authorities(Option<&'a Path>),
    /// All, as with `curl --insecure`: any host on the way can read and change the data.
    DangerousNoVerification,
}

/// Settings for sessions that offer these ALPN protocols, the preferred one first (RFC 7301). Reads
/// the certificates of the authorities, which takes a while.
///
/// # Errors
/// The certificate file that cannot be used, and why.
pub fn client_settings(trust: Trust<'_>, protocols: &[&[u8]]) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut settings = match trust {
        Trust::Authorities(file) => {
            let authorities = Arc::new(authorities(file)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(authorities, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            builder.with_webpki_verifier(verifier).with_no_client_auth()
        }
        Trust::DangerousNoVerification => {
            let algorithms = provider.signature_verification_algorithms;
            let verifier = Arc::new(DangerousNoVerification::new(algorithms));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    settings.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(settings)
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = file {
        let invalid = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| invalid(&error))? {
            let certificate = certificate.map_err(|error| invalid(&error))?;
            roots.add(certificate).map_err(|error| invalid(&error))?;
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
    fn protocols_are_offered_in_order() {
        let settings = client_settings(Trust::DangerousNoVerification, &[b"h2", b"http/1.1"])
            .expect("no files");
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
