//! [`ServerOptions`]: what an operator sets for the TLS of a listener.
//!
//! Filled by the gateway from its configuration. Invariant: listeners with equal options can resume each
//! other's sessions, so whatever decides who may connect is among them.

use crate::issued::Issued;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens a file for reading, possibly with more privileges than this process has.
pub type Open<'a> = &'a dyn Fn(&Path) -> io::Result<File>;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// Where its certificates come from.
    pub certificates: CertificateSource,
    /// ALPN protocols, the preferred one first (RFC 7301).
    pub protocols: Vec<&'static [u8]>,
    /// The oldest version that is accepted.
    pub minimum: MinimumVersion,
    /// Whether and how clients are authenticated.
    pub clients: Option<ClientAuthorities>,
    /// Whether requests are accepted before the handshake is complete (RFC 8446 2.3), and what clients remember
    /// of a server together with their tickets, such as the largest head of a request (RFC 9114 7.2.4.2):
    /// after a change their tickets are not accepted.
    pub early_data: Option<u64>,
    /// Whether secrets are written to the file that `SSLKEYLOGFILE` names, for Wireshark. Only for
    /// development: the secrets decrypt all traffic.
    pub logs_secrets: bool,
}

/// Where the certificates of a listener come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// These files; a client without a server name, or with an unknown one, gets the first.
    Files(Vec<CertificateFiles>),
    /// The server obtains them itself; an unknown server name is refused.
    Issued(Arc<Issued>),
}

impl Default for CertificateSource {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

/// The oldest version of TLS that is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MinimumVersion {
    /// TLS 1.2 (RFC 5246).
    #[default]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate in PEM, followed by those of intermediate authorities.
    pub chain: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
    /// An OCSP response in DER (RFC 6960), which clients get with the certificate (RFC 6066 8).
    pub ocsp: Option<PathBuf>,
}

/// The authorities of client certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// Their certificates in PEM.
    pub authorities: PathBuf,
    /// Their revocation lists in PEM (RFC 5280 5).
    pub revoked: Option<PathBuf>,
    /// Whether a client without a valid certificate is refused in the handshake.
    pub are_required: bool,
}

/// An error of a file.
pub(crate) fn invalid(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
