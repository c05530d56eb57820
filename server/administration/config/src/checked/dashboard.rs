//! The dashboard on an address. Invariants: there is none without a user; passwords do not cross a network in the clear.

use super::authentication::{self, BasicAuth};
use super::context::Context;
use super::listen::{self, ListenAddress};
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

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, parse, valid};
    use crate::*;

    #[test]
    fn a_dashboard_on_an_address_has_a_user() {
        let text = |auth: &str| {
            format!(
                "[admin.dashboard]\nlisten = \"127.0.0.1:9180\"\nhosts = \"ops.example\"\n{auth}\n{APP}"
            )
        };
        let hash = "$2y$10$jg44ROIOPEAL4.BPqcHtj.RTllnd4NFJPTSSVPQgYPDtgKrhVs1bG";
        let config = valid(&text(&format!("basic_auth.users = {{ ops = '{hash}' }}")));
        let dashboard = config.admin.dashboard.expect("it is configured");
        assert_eq!(dashboard.listen, ListenAddress::Tcp(([127, 0, 0, 1], 9180).into()));
        assert_eq!(dashboard.hosts, ["ops.example"]);
        for auth in ["", "basic_auth = {}", "basic_auth.users = { ops = 'plain' }"] {
            assert!(parse(&text(auth)).is_err(), "{auth}");
        }
        let at = |address: &str| {
            let valid = text(&format!("basic_auth.users = {{ ops = '{hash}' }}"));
            parse(&valid.replace("127.0.0.1:9180", address)).is_ok()
        };
        for address in
            ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/run/ops"]
        {
            assert!(at(address), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", ":9180"] {
            assert!(!at(address), "{address} is reachable without TLS");
        }
    }
}
