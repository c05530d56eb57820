//! The dashboard on an address. Invariants: there is none without a user; passwords do not cross a network in the clear.

use super::{BasicAuth, Context, ListenAddress, authentication, listen};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::Fault;

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
    let address = listen::address(&raw.listen, mode, &["admin", "dashboard", "listen"], context);
    if let ListenAddress::Tcp(address) = &address
        && !address.ip().to_canonical().is_loopback()
    {
        let fault = Fault::new(format!(
            "{address} has no TLS, so that passwords cross the network in the clear"
        ))
        .hint("listen on 127.0.0.1, and add an app with TLS whose `proxy` leads there");
        context.value(&["admin", "dashboard", "listen"], Kind::BadValue, fault);
    }
    Dashboard {
        listen: address,
        hosts: raw.hosts.as_slice().iter().map(|host| host.0.clone()).collect(),
        basic_auth: authentication::basic_auth(&raw.basic_auth, &place, context),
    }
}
