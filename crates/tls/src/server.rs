//! TLS server settings: certificates by server name (RFC 6066 3).
//!
//! Read by the gateway at start and at each reload. Invariants: settings exist only with matching
//! keys; a client without a server name, or with an unknown one, gets the first certificate.

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of intermediate authorities.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Opens a file for reading, possibly with more privileges than this process has.
pub type Open<'a> = &'a dyn Fn(&Path) -> io::Result<File>;

/// Settings of server sessions.
#[derive(Debug)]
pub struct ServerSettings {
    pub(crate) rustls: Arc<ServerConfig>,
    certificates: Arc<ByName>,
}

/// One of the certificates of [`ServerSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen(usize);

impl ServerSettings {
    /// Settings for sessions with these certificates and ALPN protocols, the preferred one first
    /// (RFC 7301). Sessions can be resumed (RFC 8446 2.2), without early data, which can be
    /// replayed.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn read(
        files: &[CertificateFiles],
        protocols: &[&[u8]],
        open: Open<'_>,
    ) -> Result<Self, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let loaded = files.iter().map(|files| Certificate::read(files, &provider, open));
        let certificates = Arc::new(ByName(loaded.collect::<Result<Vec<_>, String>>()?));
        let rustls = Arc::new(settings(provider, certificates.clone(), protocols)?);
        Ok(Self { rustls, certificates })
    }

    /// The certificate for a server name, if there is a choice.
    pub fn chosen(&self, name: Option<&str>) -> Option<Chosen> {
        let ByName(all) = &*self.certificates;
        let name = name.filter(|_| all.len() > 1)?.to_ascii_lowercase();
        Some(Chosen(self.certificates.index_of(&name)))
    }

    /// Whether a request for this host belongs on a connection with another certificate (RFC 9110
    /// 7.4).
    pub fn is_misdirected(&self, chosen: Chosen, host: &str) -> bool {
        let ByName(all) = &*self.certificates;
        let host = host.to_ascii_lowercase();
        let covers = |certificate: &Certificate| certificate.covers(&host);
        !all.get(chosen.0).is_some_and(covers) && all.iter().any(covers)
    }
}

fn settings(
    provider: Arc<CryptoProvider>,
    certificates: Arc<ByName>,
    protocols: &[&[u8]],
) -> Result<ServerConfig, String> {
    let mut settings = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    settings.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
    settings.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(settings)
}

#[derive(Debug)]
struct ByName(Vec<Certificate>);

impl ByName {
    /// The index of the certificate for a name: an exact match, a wildcard, or the first.
    fn index_of(&self, name: &str) -> usize {
        let of = |name: &str| self.0.iter().position(|certificate| certificate.has_name(name));
        of(name).or_else(|| of(&wildcard_of(name)?)).unwrap_or(0)
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let index = hello.server_name().map_or(0, |name| self.index_of(name));
        self.0.get(index).map(|certificate| certificate.certified.clone())
    }
}

/// A wildcard stands for one label (RFC 9525 6.3).
fn wildcard_of(name: &str) -> Option<String> {
    name.split_once('.').map(|(_, above)| format!("*.{above}"))
}

#[derive(Debug)]
struct Certificate {
    /// In lower case, as rustls passes server names.
    names: Vec<String>,
    certified: Arc<CertifiedKey>,
}

impl Certificate {
    fn read(
        files: &CertificateFiles,
        provider: &CryptoProvider,
        open: Open<'_>,
    ) -> Result<Self, String> {
        let open = |path: &Path| open(path).map_err(|error| invalid(path, &error));
        let chain = CertificateDer::pem_reader_iter(BufReader::new(open(&files.chain)?))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(&files.chain, &error))?;
        let Some(first) = chain.first() else {
            return Err(invalid(&files.chain, &"there is no certificate in it"));
        };
        let names = webpki::EndEntityCert::try_from(first)
            .map_err(|error| invalid(&files.chain, &error))?
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect();
        let key = PrivateKeyDer::from_pem_reader(BufReader::new(open(&files.key)?))
            .map_err(|error| invalid(&files.key, &error))?;
        let certified =
            CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    let chain = files.chain.display();
                    invalid(
                        &files.key,
                        &format!("this is not the key of the certificate in {chain}"),
                    )
                }
                error => invalid(&files.key, &error),
            })?;
        Ok(Self { names, certified: Arc::new(certified) })
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|theirs| theirs == name)
    }

    /// Whether the certificate is valid for this name, exactly or by wildcard.
    fn covers(&self, name: &str) -> bool {
        self.has_name(name) || wildcard_of(name).is_some_and(|any| self.has_name(&any))
    }
}

fn invalid(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
