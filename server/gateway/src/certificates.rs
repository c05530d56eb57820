//! Certificates that the server obtains itself, where the gateway meets them: start and reload, challenges
//! over HTTP, status.
//!
//! Called by the server on the lead, and by dispatch on each thread. Invariants: the certificates that are
//! stored are in use before an address is served; the response to a challenge precedes all that is
//! configured.

use crate::gateway::Gateway;
use crate::request::{Request, ResponseSummary, send};
use outboard_admin_api::certificates::Certificates;
use outboard_certificates::{Manager, PARTS, default_directory};
use outboard_config::{Acme, Config};
use outboard_http_server::{HeaderBlock, ResponseWriter};
use outboard_log::Level;
use outboard_reactor::{mailbox, spawn};
use outboard_tls::{Issued, TicketKeys};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// The directory of a challenge over HTTP (RFC 8555 8.3).
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// What listeners with TLS share for as long as the server runs.
#[derive(Debug, Clone)]
pub(crate) struct TlsState {
    pub(crate) ticket_keys: TicketKeys,
    pub(crate) issued: Arc<Issued>,
    /// The directory of certificates if none is configured, by the user that has started the server.
    default_directory: Option<PathBuf>,
}

impl TlsState {
    /// That of a server that starts.
    pub(crate) fn new() -> Self {
        Self {
            ticket_keys: TicketKeys::default(),
            issued: Arc::default(),
            default_directory: default_directory(),
        }
    }
}

/// The directories that the gateway's user must own: the directory of certificates, and what is in it.
pub(crate) fn directory(config: &Config) -> Option<(PathBuf, Vec<String>)> {
    let directory = config.acme.as_ref()?.storage.clone().or_else(default_directory)?;
    Some((directory, PARTS.map(str::to_owned).to_vec()))
}

/// Obtains the certificates of a configuration from now on.
///
/// # Errors
/// The directory that cannot be used.
pub(crate) fn obtain(
    gateway: &Rc<Gateway>,
    config: &Config,
    state: &TlsState,
) -> Result<(), String> {
    let mut manager = gateway.certificates.borrow_mut();
    match (&config.acme, &*manager) {
        (None, _) => *manager = None,
        (Some(acme), Some(present)) => present.configure(acme.clone()),
        (Some(acme), None) => *manager = Some(start(gateway, acme, state)?),
    }
    Ok(())
}

fn start(gateway: &Rc<Gateway>, acme: &Acme, state: &TlsState) -> Result<Manager, String> {
    let directory = acme.storage.as_ref().or(state.default_directory.as_ref());
    let directory = directory.ok_or("there is no home directory: set `storage` in [acme]")?;
    let (log, lines) = mailbox::<outboard_certificates::LogLine>();
    let server = gateway.server.clone();
    spawn(async move {
        loop {
            let line = lines.next().await;
            server.log(line.level, &line.text);
        }
    });
    Manager::start(acme.clone(), directory, &state.issued, log)
}

/// The certificates and their state.
pub(crate) fn status(gateway: &Gateway) -> Certificates {
    gateway.certificates.borrow().as_ref().map(Manager::status).unwrap_or_default()
}

/// Responds to the challenge of an authority. Requests for other tokens are routed as any other.
pub(crate) async fn try_handle(
    request: &Request<'_>,
    response: &mut ResponseWriter,
) -> Option<ResponseSummary> {
    let issued = request.client.listener.issued.clone()?;
    let token = request.path().strip_prefix(CHALLENGES)?;
    let key = issued.response(std::str::from_utf8(token).ok()?)?;
    request.gateway.server.log(Level::Debug, "an authority checks a name");
    let headers = HeaderBlock::constant(&[("Content-Type", "application/octet-stream")]);
    Some(send(response, 200, &headers, key.as_bytes()).await)
}
