//! [`Sessions`]: the settings of TLS sessions, made once for each way of calling.
//!
//! Invariant: certificates are checked unless the call says otherwise.

use crate::error::{Error, Kind};
use outboard_reactor::{Stream, blocking};
use outboard_tls::{Session, Trust};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a call wants its TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) verify: bool,
    pub(crate) http2: bool,
}

/// Settings by wish, made when first needed: reading the system's certificates takes a while.
#[derive(Debug)]
pub(crate) struct Sessions {
    ca_file: Option<PathBuf>,
    made: RefCell<Vec<(Wish, Arc<ClientConfig>)>>,
}

impl Sessions {
    pub(crate) fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, made: RefCell::default() }
    }

    async fn settings(&self, wish: Wish) -> Result<Arc<ClientConfig>, Error> {
        if let Some((_, known)) = self.made.borrow().iter().find(|(theirs, _)| *theirs == wish) {
            return Ok(known.clone());
        }
        let ca_file = self.ca_file.clone();
        let made = blocking(move || make(wish, ca_file.as_deref())).await;
        let made = Arc::new(made.map_err(|why| Error::new(Kind::Tls, why))?);
        self.made.borrow_mut().push((wish, made.clone()));
        Ok(made)
    }

    /// Begins a session and shakes hands.
    pub(crate) async fn connect(
        &self,
        stream: Stream,
        host: &str,
        wish: Wish,
    ) -> Result<Session, Error> {
        let settings = self.settings(wish).await?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::new(Kind::Tls, format!("{host}: {error}")))?;
        Session::connect(stream, settings, name)
            .await
            .map_err(|error| Error::new(Kind::Tls, format!("no TLS with {host}: {error}")))
    }
}

fn make(wish: Wish, ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let trust =
        if wish.verify { Trust::Authorities(ca_file) } else { Trust::DangerousNoVerification };
    let protocols: &[&[u8]] = if wish.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    outboard_tls::client_settings(trust, protocols)
        .map_err(|why| format!("{why} (see upstream.ca)"))
}
