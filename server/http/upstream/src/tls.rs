//! [`Sessions`]: the TLS configurations, built once for each combination of options.
//!
//! Invariant: certificates are verified unless the request disables it.

use crate::error::{Error, Kind};
use outboard_reactor::{Stream, blocking};
use outboard_tls::{Session, Trust};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The TLS options of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) verify: bool,
    pub(crate) http2: bool,
}

/// Configurations by options, built on first use because reading the system's certificates is slow.
#[derive(Debug)]
pub(crate) struct Sessions {
    ca_file: Option<PathBuf>,
    built: RefCell<Vec<(TlsOptions, Arc<ClientConfig>)>>,
}

impl Sessions {
    pub(crate) fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, built: RefCell::default() }
    }

    async fn settings(&self, tls: TlsOptions) -> Result<Arc<ClientConfig>, Error> {
        if let Some((_, known)) = self.built.borrow().iter().find(|(theirs, _)| *theirs == tls) {
            return Ok(known.clone());
        }
        let ca_file = self.ca_file.clone();
        let built = blocking(move || build(tls, ca_file.as_deref())).await;
        let built = Arc::new(built.map_err(|why| Error::new(Kind::Tls, why))?);
        self.built.borrow_mut().push((tls, built.clone()));
        Ok(built)
    }

    /// Starts a session and completes its handshake.
    pub(crate) async fn connect(
        &self,
        stream: Stream,
        host: &str,
        tls: TlsOptions,
    ) -> Result<Session, Error> {
        let settings = self.settings(tls).await?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::new(Kind::Tls, format!("{host}: {error}")).because(error))?;
        Session::connect(stream, settings, name).await.map_err(|error| {
            Error::new(Kind::Tls, format!("no TLS with {host}: {error}")).because(error)
        })
    }
}

fn build(tls: TlsOptions, ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let trust =
        if tls.verify { Trust::Authorities(ca_file) } else { Trust::DangerousNoVerification };
    let protocols: &[&[u8]] = if tls.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    outboard_tls::client_settings(trust, protocols)
        .map_err(|why| format!("{why} (see upstream.ca)"))
}
