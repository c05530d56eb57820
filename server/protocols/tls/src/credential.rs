//! [`Credential`]: a certificate chain with its private key, as one text in PEM, and facts about it.
//!
//! Created from what an authority has issued. Invariant: the key matches the certificate.

use crate::certificate_fields::{Fields, Time};
use crate::distinguished_name;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub struct Credential {
    /// In lower case; a wildcard begins with `*.`.
    names: Vec<String>,
    facts: Facts,
    pub(crate) certified: Arc<CertifiedKey>,
}

/// Facts about a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The authority, such as `CN=E7,O=Let's Encrypt,C=US`.
    pub issuer: String,
    /// The time in seconds since 1970 from which it is valid.
    pub not_before_s: u64,
    /// The time until which it is valid.
    pub not_after_s: u64,
    /// The serial number, as its encoding has it.
    pub serial: Vec<u8>,
    /// The identifier of the authority's key.
    pub authority_key: Option<Vec<u8>>,
}

impl Credential {
    /// Reads a chain and its key.
    ///
    /// # Errors
    /// Why they cannot be used, in one sentence.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let chain = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(pem)
            .map_err(|error| format!("the private key cannot be read: {error}"))?;
        Self::new(chain, key)
    }

    /// The same in DER.
    ///
    /// # Errors
    /// As [`Credential::from_pem`].
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, String> {
        let first = chain.first().ok_or("there is no certificate")?;
        let names = webpki::EndEntityCert::try_from(first)
            .map_err(|error| format!("the certificate is invalid: {error}"))?
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect();
        let facts = Facts::read(first).ok_or("the certificate has no readable validity")?;
        let certified = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    "the private key is not that of the certificate".to_owned()
                }
                error => format!("the private key cannot be used: {error}"),
            })?;
        Ok(Self { names, facts, certified: Arc::new(certified) })
    }

    /// The facts.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether the certificate is valid for a name, or names this wildcard.
    pub fn covers(&self, name: &str) -> bool {
        let above = name.split_once('.').map(|(_, above)| above);
        self.names.iter().any(|theirs| {
            theirs.eq_ignore_ascii_case(name)
                // A wildcard stands for one label (RFC 9525 6.3).
                || theirs.strip_prefix("*.").zip(above).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
        })
    }
}

impl Facts {
    fn read(certificate: &[u8]) -> Option<Self> {
        let fields = Fields::read(certificate)?;
        Some(Self {
            issuer: distinguished_name::text(fields.issuer)?,
            not_before_s: Time::read(fields.not_before)?.unix_s(),
            not_after_s: Time::read(fields.not_after)?.unix_s(),
            serial: fields.serial.to_vec(),
            authority_key: fields.authority_key().map(<[u8]>::to_vec),
        })
    }
}
