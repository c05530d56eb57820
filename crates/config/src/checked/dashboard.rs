//! The dashboard on an address. Invariant: there is none without a user.

use super::{BasicAuth, Context, ListenAddress, authentication, listen};
use crate::raw;

/// The dashboard on an address.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// The address.
    pub listen: ListenAddress,
    /// Names of the server in URLs, in addition to addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Its users.
    pub basic_auth: BasicAuth,
}

pub(super) fn dashboard(raw: &raw::Dashboard, context: &mut Context<'_>) -> Dashboard {
    let place = ["admin", "dashboard"];
    let mode = listen::DEFAULT_SOCKET_MODE;
    Dashboard {
        listen: listen::address(&raw.listen, mode, &["admin", "dashboard", "listen"], context),
        hosts: raw.hosts.as_slice().iter().map(|host| host.0.clone()).collect(),
        basic_auth: authentication::basic_auth(&raw.basic_auth, &place, context),
    }
}
