//! The names of a listener: for logs, and for a browser.
//!
//! Called by the gateway when it reports what it serves.

use super::BoundListener;
use crate::listener_context::Role;

impl BoundListener {
    /// The address in text, with the actual port.
    pub fn name(&self) -> String {
        self.local.map_or_else(|| self.address.to_string(), |local| local.to_string())
    }

    /// A URL for a browser.
    pub fn url(&self) -> String {
        let scheme = match (self.role(), self.context.borrow().tls.is_some()) {
            (Role::Streams, false) => "tcp",
            (Role::Streams, true) => "tls",
            (_, false) => "http",
            (_, true) => "https",
        };
        match self.local {
            Some(local) if local.ip().is_unspecified() => {
                format!("{scheme}://localhost:{}/", local.port())
            }
            Some(local) => format!("{scheme}://{local}/"),
            None => self.address.to_string(),
        }
    }
}
