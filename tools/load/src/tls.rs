//! [`Tls`]: the settings of all TLS connections of a run (RFC 8446), by rustls.
//!
//! Sessions are resumed if the plan and the server allow it, as in browsers. All threads share the
//! settings, so a ticket serves all of them.

use crate::plan::Plan;
use crate::quic;
use crate::target::Protocol;
use outboard_tls::Trust;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::borrow::Cow;
use std::sync::Arc;

/// The TLS settings.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    settings: Arc<ClientConfig>,
    /// Those of HTTP/3.
    quic: Option<quic::Settings>,
    name: ServerName<'static>,
}

impl Tls {
    /// The settings of a plan, if its target wants TLS.
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>, String> {
        let Some(name) = &plan.target.tls_name else { return Ok(None) };
        let trust = match plan.verify_tls {
            true => Trust::Authorities(None),
            false => Trust::DangerousNoVerification,
        };
        let protocol: &[u8] = match plan.target.protocol {
            Protocol::Http2 => b"h2",
            Protocol::Http3 => b"h3",
            Protocol::Http1 | Protocol::FastCgi | Protocol::Redis => b"http/1.1",
        };
        let mut settings = outboard_tls::client_settings(trust, &[protocol])?;
        if !plan.resumes_tls {
            settings.resumption = Resumption::disabled();
        }
        let settings = Arc::new(settings);
        let is_quic = plan.target.protocol == Protocol::Http3;
        let quic = is_quic.then(|| quic::Settings::new(settings.clone())).transpose()?;
        let name =
            ServerName::try_from(name.clone()).map_err(|error| format!("{name}: {error}"))?;
        Ok(Some(Self { settings, quic, name }))
    }

    /// The settings of HTTP/3 and the name of the server, if the target speaks it.
    pub(crate) fn quic(&self) -> Option<(&quic::Settings, Cow<'_, str>)> {
        self.quic.as_ref().map(|settings| (settings, self.name.to_str()))
    }

    /// A new session over TCP.
    pub(crate) fn session(&self) -> Option<Box<ClientConnection>> {
        let session = ClientConnection::new(self.settings.clone(), self.name.clone());
        let mut session = session.ok()?;
        // A request is handed over whole; what the socket does not take waits in our own buffer.
        session.set_buffer_limit(None);
        Some(Box::new(session))
    }
}
