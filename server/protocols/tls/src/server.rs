//! [`ServerSettings`]: the settings of a listener's sessions.
//!
//! Read by the gateway at start and at each reload. Invariants: settings exist only with certificates whose
//! keys match; any thread resumes a session: by its ticket alone or, with early data, once by what all threads
//! store of it (RFC 8446 8.1).

use crate::certificates::Certificates;
use crate::client_verification::ClientVerification;
use crate::credential::Credential;
use crate::issued::{CHALLENGE_PROTOCOL, Issued};
use crate::options::{CertificateSource, MinimumVersion, Open, ServerOptions};
use crate::ticket_keys::TicketKeys;
use rustls::crypto::aws_lc_rs;
use rustls::server::{Acceptor, NoServerSessionStorage, ResolvesServerCert, ServerConfig};
use rustls::version::{TLS12, TLS13};
use rustls::{KeyLogFile, SupportedProtocolVersion};
use std::sync::Arc;

/// The most tickets of a session. Without a request of the client there are two, as browsers use each once.
const MAX_TICKETS: usize = 4;

/// Early data of a connection of TCP: a few requests without body.
const EARLY_DATA_BYTES: u32 = 16 << 10;

/// See the module.
#[derive(Debug)]
pub struct ServerSettings {
    pub(crate) rustls: Arc<ServerConfig>,
    pub(crate) clients: Option<ClientVerification>,
    certificates: Source,
}

/// Where certificates come from.
#[derive(Debug, Clone)]
enum Source {
    Files(Arc<Certificates>),
    Issued(Arc<Issued>),
}

/// One of the certificates of [`ServerSettings`].
#[derive(Debug, Clone)]
pub struct Chosen(ChosenCertificate);

#[derive(Debug, Clone)]
enum ChosenCertificate {
    /// By its place among the files.
    OfFiles(usize),
    Issued(Arc<Credential>),
}

impl ServerSettings {
    /// Settings for sessions by these options. Sessions can be resumed (RFC 8446 2.2).
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn read(
        options: &ServerOptions,
        keys: &TicketKeys,
        open: Open<'_>,
    ) -> Result<Self, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let certificates = Source::of(&options.certificates, open)?;
        let clients = options.clients.as_ref();
        let clients = clients.map(|files| ClientVerification::read(files, provider.clone(), open));
        let clients = clients.transpose()?;
        let versions: &[&'static SupportedProtocolVersion] = match options.minimum {
            MinimumVersion::Tls12 => &[&TLS13, &TLS12],
            MinimumVersion::Tls13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| error.to_string())?;
        let builder = match &clients {
            Some(clients) => builder.with_client_cert_verifier(clients.verifier()),
            None => builder.with_no_client_auth(),
        };
        let mut rustls = builder.with_cert_resolver(certificates.resolver());
        // RFC 9149: fewer tickets, or more for parallel connections, if the client requests a number.
        rustls.max_tls13_tickets = MAX_TICKETS;
        if options.early_data.is_some() {
            rustls.session_storage = keys.sessions_of(options);
            rustls.max_early_data_size = EARLY_DATA_BYTES;
            rustls.send_half_rtt_data = true;
        } else {
            rustls.ticketer = keys.of(options)?;
            rustls.session_storage = Arc::new(NoServerSessionStorage {});
        }
        rustls.alpn_protocols = options.protocols.iter().map(|name| name.to_vec()).collect();
        if matches!(certificates, Source::Issued(_)) {
            rustls.alpn_protocols.push(CHALLENGE_PROTOCOL.to_vec());
        }
        if options.logs_secrets {
            rustls.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(Self { rustls: Arc::new(rustls), clients, certificates })
    }

    /// The same for QUIC, which requires TLS 1.3 (RFC 9001 4.2), with its own ALPN protocols.
    pub fn for_quic(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let mut settings = ServerConfig::clone(&self.rustls);
        if settings.max_early_data_size > 0 {
            // RFC 9001 4.6.1: all or none.
            settings.max_early_data_size = u32::MAX;
        }
        settings.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(settings)
    }

    /// The name that a client requests with these first bytes, if its certificate may be obtained on demand
    /// and is not there yet. QUIC does not wait for that.
    pub fn missing_name(&self, received: &[u8]) -> Option<(&Issued, String)> {
        let Source::Issued(issued) = &self.certificates else { return None };
        if !issued.is_on_demand() {
            return None;
        }
        let mut acceptor = Acceptor::default();
        acceptor.read_tls(&mut &*received).ok()?;
        // A longer first flight is not waited for: the client tries again.
        let accepted = acceptor.accept().ok()??;
        let hello = accepted.client_hello();
        if hello.alpn().is_some_and(|mut all| all.any(|one| one == CHALLENGE_PROTOCOL)) {
            return None;
        }
        let name = hello.server_name()?;
        issued.find(name).is_none().then(|| (&**issued, name.to_owned()))
    }

    /// The certificate for a server name, if there is a choice.
    pub fn chosen(&self, name: Option<&str>) -> Option<Chosen> {
        let chosen = match &self.certificates {
            Source::Files(files) => {
                let name = name.filter(|_| files.len() > 1)?.to_ascii_lowercase();
                ChosenCertificate::OfFiles(files.index_of(&name))
            }
            Source::Issued(issued) => ChosenCertificate::Issued(issued.of_client(name)?),
        };
        Some(Chosen(chosen))
    }

    /// Whether a request for this host belongs on a connection with another certificate (RFC 9110
    /// 7.4).
    pub fn is_misdirected(&self, chosen: &Chosen, host: &str) -> bool {
        match (&chosen.0, &self.certificates) {
            (ChosenCertificate::OfFiles(index), Source::Files(files)) => {
                files.is_for_another(*index, &host.to_ascii_lowercase())
            }
            (ChosenCertificate::Issued(credential), Source::Issued(issued)) => {
                !credential.covers(host) && issued.find(&host.to_ascii_lowercase()).is_some()
            }
            // A reload has changed where they come from: the connection is served to its end.
            _ => false,
        }
    }

    /// Whether the certificates are those of files.
    pub fn have_files(&self) -> bool {
        matches!(&self.certificates, Source::Files(_))
    }

    /// Reads files of certificates, keys and OCSP responses again that have changed. Each item is something to be
    /// logged: a certificate that was renewed, or why a file cannot be used; then the one that was read before remains.
    pub fn refresh(&self, open: Open<'_>) -> Vec<Result<String, String>> {
        match &self.certificates {
            Source::Files(files) => files.refresh(open),
            Source::Issued(_) => Vec::new(),
        }
    }
}

impl Source {
    fn of(source: &CertificateSource, open: Open<'_>) -> Result<Self, String> {
        Ok(match source {
            CertificateSource::Files(files) => {
                Self::Files(Arc::new(Certificates::read(files, open)?))
            }
            CertificateSource::Issued(issued) => Self::Issued(issued.clone()),
        })
    }

    fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        match self {
            Self::Files(files) => files.clone(),
            Self::Issued(issued) => issued.clone(),
        }
    }
}
