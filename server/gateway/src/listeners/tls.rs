//! The TLS of listeners: certificates and options by the configuration, and files that are read again.
//!
//! Called when the listeners of a configuration are read. Invariant: a file that cannot be used any more
//! is logged once, and the one before remains.

use crate::certificates::TlsState;
use crate::gateway::Gateway;
use outboard_config::{Config, Listener, Protocol};
use outboard_log::{Level, Opener};
use outboard_reactor::{activity, blocking, sleep};
use outboard_tls::{
    CertificateFiles, CertificateSource, ClientAuthorities, Issued, MinimumVersion, ServerOptions,
    ServerSettings,
};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The interval at which files are checked.
const REFRESH_INTERVAL_MS: u64 = 5_000;

/// The certificates of a listener.
#[derive(Debug, Clone)]
pub(crate) struct Certificates {
    /// If it uses TLS.
    pub(super) settings: Option<Arc<ServerSettings>>,
    /// If the server obtains certificates itself: authorities check its names on any listener.
    pub(super) issued: Option<Arc<Issued>>,
}

/// Reads the certificates of each listener. There may be very many, so a reload does it on a
/// thread.
///
/// # Errors
/// A certificate or key that cannot be used.
pub(crate) fn certificates(
    config: &Config,
    opener: &Opener,
    state: &TlsState,
) -> Result<Vec<Certificates>, String> {
    let open = |path: &Path| opener.read(path);
    let read = |listener| {
        let options = options(listener, config, &state.issued);
        let settings =
            options.map(|options| ServerSettings::read(&options, &state.ticket_keys, &open));
        Ok(Certificates {
            settings: settings.transpose()?.map(Arc::new),
            issued: config.acme.is_some().then(|| state.issued.clone()),
        })
    };
    config.listeners.iter().map(read).collect()
}

/// The options of a listener; `None` if it does not use TLS.
fn options(listener: &Listener, config: &Config, issued: &Arc<Issued>) -> Option<ServerOptions> {
    if !listener.is_encrypted() {
        return None;
    }
    let certificates = listener.certificates.iter().map(|files| CertificateFiles {
        chain: files.certificate.clone(),
        key: files.key.clone(),
        ocsp: files.ocsp.clone(),
    });
    let clients = listener.clients.as_ref().map(|clients| ClientAuthorities {
        authorities: clients.authorities.clone(),
        revoked: clients.revoked.clone(),
        are_required: clients.are_required,
    });
    let is_http = listener.protocol == Protocol::Http;
    Some(ServerOptions {
        certificates: match listener.obtains_certificates {
            true => CertificateSource::Issued(issued.clone()),
            false => CertificateSource::Files(certificates.collect()),
        },
        protocols: if is_http { vec![b"h2", b"http/1.1", b"http/1.0"] } else { Vec::new() },
        minimum: match listener.requires_tls13 {
            true => MinimumVersion::Tls13,
            false => MinimumVersion::Tls12,
        },
        clients,
        early_data: listener.early_data.then(|| {
            let limits = &config.limits;
            limits.request_line_bytes.saturating_add(limits.header_bytes)
        }),
        logs_secrets: config.development.is_some(),
    })
}

/// Reads changed certificates and OCSP responses of the lead's listeners, whose settings all threads share, for as
/// long as the server runs.
pub(crate) async fn refresh_regularly(gateway: Rc<Gateway>, opener: Opener) {
    loop {
        // An idle server has no handshakes, and is not woken.
        activity().await;
        sleep(REFRESH_INTERVAL_MS).await;
        let listeners = gateway.listeners.borrow().clone();
        let encrypted = listeners.iter().filter_map(|bound| bound.tls());
        let of_files: Vec<_> = encrypted.filter(|settings| settings.have_files()).collect();
        if of_files.is_empty() {
            continue;
        }
        let opener = opener.clone();
        let notes = blocking(move || {
            let open = |path: &Path| opener.read(path);
            of_files.iter().flat_map(|settings| settings.refresh(&open)).collect::<Vec<_>>()
        });
        for note in notes.await {
            match note {
                Ok(renewed) => gateway.server.log(Level::Info, &renewed),
                Err(fault) => gateway.server.log(Level::Warn, &fault),
            }
        }
    }
}
