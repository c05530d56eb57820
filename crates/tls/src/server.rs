//! The certificates that a server shows, by the name that the client asks for (RFC 6066 3).
//!
//! Read by the gateway at start and at each reload. Invariants: a key belongs to its certificate,
//! or there are no settings; a client that asks for a name of none of them, or for no name, is shown
//! the first.

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a certificate is, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and behind it those of the authorities between.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Opens a file for reading; may be able to open what this process itself cannot.
pub type Open<'a> = &'a dyn Fn(&Path) -> io::Result<File>;

/// What a server's sessions need.
#[derive(Debug)]
pub struct ServerSettings {
    pub(crate) rustls: Arc<ServerConfig>,
    certificates: Arc<ByName>,
}

/// One of the certificates of [`ServerSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen(usize);

impl ServerSettings {
    /// Settings for sessions that show these certificates and speak these protocols, the best one
    /// first (RFC 7301). Sessions go on where earlier ones of the same client ended (RFC 8446 2.2),
    /// without early data, which could be sent twice.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn read(
        files: &[CertificateFiles],
        protocols: &[&[u8]],
        open: Open<'_>,
    ) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let shown = files.iter().map(|files| Shown::read(files, &provider, open));
        let certificates = Arc::new(ByName(shown.collect::<Result<Vec<_>, String>>()?));
        let rustls = Arc::new(settings(provider, certificates.clone(), protocols)?);
        Ok(Self { rustls, certificates })
    }

    /// The certificate that a client is shown who asks for this name, where there is a choice.
    pub fn chosen(&self, name: Option<&str>) -> Option<Chosen> {
        let ByName(all) = &*self.certificates;
        let name = name.filter(|_| all.len() > 1)?.to_ascii_lowercase();
        Some(Chosen(self.certificates.place(&name)))
    }

    /// Whether a request for this host belongs on a connection for which another certificate would
    /// have been shown (RFC 9110 7.4).
    pub fn is_misdirected(&self, chosen: Chosen, host: &str) -> bool {
        let ByName(all) = &*self.certificates;
        let host = host.to_ascii_lowercase();
        let covers = |shown: &Shown| shown.covers(&host);
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
    settings.ticketer = ring::Ticketer::new().map_err(|error| error.to_string())?;
    settings.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(settings)
}

#[derive(Debug)]
struct ByName(Vec<Shown>);

impl ByName {
    /// Where the one for this name is: of the name itself, of any in its place, or the first.
    fn place(&self, name: &str) -> usize {
        let of = |name: &str| self.0.iter().position(|shown| shown.is_of(name));
        of(name).or_else(|| of(&any_below(name)?)).unwrap_or(0)
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let place = hello.server_name().map_or(0, |name| self.place(name));
        self.0.get(place).map(|shown| shown.certified.clone())
    }
}

/// A wildcard stands for one label (RFC 9525 6.3).
fn any_below(name: &str) -> Option<String> {
    name.split_once('.').map(|(_, above)| format!("*.{above}"))
}

#[derive(Debug)]
struct Shown {
    /// In lower case, as rustls gives names to compare.
    names: Vec<String>,
    certified: Arc<CertifiedKey>,
}

impl Shown {
    fn read(
        files: &CertificateFiles,
        provider: &CryptoProvider,
        open: Open<'_>,
    ) -> Result<Self, String> {
        let open = |path: &Path| open(path).map_err(|error| broken(path, &error));
        let chain = CertificateDer::pem_reader_iter(BufReader::new(open(&files.chain)?))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| broken(&files.chain, &error))?;
        let Some(first) = chain.first() else {
            return Err(broken(&files.chain, &"there is no certificate in it"));
        };
        let names = webpki::EndEntityCert::try_from(first)
            .map_err(|error| broken(&files.chain, &error))?
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect();
        let key = PrivateKeyDer::from_pem_reader(BufReader::new(open(&files.key)?))
            .map_err(|error| broken(&files.key, &error))?;
        let certified =
            CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    let chain = files.chain.display();
                    broken(
                        &files.key,
                        &format!("this is not the key of the certificate in {chain}"),
                    )
                }
                error => broken(&files.key, &error),
            })?;
        Ok(Self { names, certified: Arc::new(certified) })
    }

    fn is_of(&self, name: &str) -> bool {
        self.names.iter().any(|theirs| theirs == name)
    }

    /// Whether it is of this name, or of any in its place.
    fn covers(&self, name: &str) -> bool {
        self.is_of(name) || any_below(name).is_some_and(|any| self.is_of(&any))
    }
}

fn broken(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
