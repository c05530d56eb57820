//! Debugging of an app: whose requests get a worker with Xdebug.
//!
//! Invariant: in production only what is written permits it.

use super::context::Context;
use super::peers::Peers;
use crate::raw;
use crate::scalar::Peer;
use std::net::IpAddr;

/// See the module.
#[derive(Clone, Debug)]
pub struct Debug {
    /// Whose requests may have a debugger; `None`: nobody's, as nothing is written.
    clients: Option<Peers>,
    /// The maximum number of requests, and of tasks, that are debugged at a time.
    pub workers: u32,
    /// Whether other workers keep an Xdebug that the ini files load.
    pub in_all_workers: bool,
    /// Whether the app is a program that starts a server, and has connections of its own.
    is_program: bool,
}

impl Debug {
    /// `place` is that of the table.
    pub(super) fn of(
        table: &raw::Debug,
        is_program: bool,
        place: &[&str],
        context: &mut Context<'_>,
    ) -> Self {
        let place = [place, &["clients"]].concat();
        let clients = table.clients.as_ref().map(|clients| context.peers(&place, clients));
        Self {
            clients: clients.as_deref().map(Peers::new),
            workers: table.max,
            in_all_workers: table.in_all_workers,
            is_program,
        }
    }

    /// With development mode, where the machine itself may by default.
    pub(super) fn develop(&mut self) {
        let local =
            ["127.0.0.0/8", "::1"].map(|text| Peer::Network(text.parse().expect("a network")));
        self.clients.get_or_insert_with(|| Peers::new(&local));
    }

    /// Whether any client may.
    pub fn is_on(&self) -> bool {
        !self.is_program && self.clients.as_ref().is_some_and(|clients| !clients.is_empty())
    }

    /// Whether a client may; one on a Unix socket has no address.
    pub fn admits(&self, client: Option<IpAddr>) -> bool {
        self.clients.as_ref().is_some_and(|clients| clients.contains(client))
    }
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, valid};
    use crate::{App, Kind};

    const LOCAL: [u8; 4] = [127, 0, 0, 1];

    fn app(environment: &str, keys: &str) -> App {
        valid(&format!("environment = \"{environment}\"\n{APP}{keys}")).apps[0].clone()
    }

    #[test]
    fn no_client_may_in_production_and_local_ones_in_development() {
        let production = app("production", "").debug;
        assert!(
            !production.is_on()
                && !production.admits(Some(LOCAL.into()))
                && !production.admits(None)
        );
        let development = app("development", "").debug;
        assert!(development.is_on() && development.admits(Some(LOCAL.into())));
        assert!(!development.admits(Some([10, 0, 0, 1].into())) && !development.admits(None));
        assert_eq!((development.workers, development.in_all_workers), (4, false));
    }

    #[test]
    fn what_is_written_replaces_the_default() {
        for environment in ["production", "development"] {
            let debug = app(environment, "debug = { clients = [\"10.0.0.0/8\"], max = 2 }\n").debug;
            assert!(debug.admits(Some([10, 1, 2, 3].into())) && !debug.admits(Some(LOCAL.into())));
            assert_eq!(debug.workers, 2);
            assert!(!app(environment, "debug.clients = []\n").debug.is_on());
        }
        assert_error(&format!("{APP}debug.clients = [\"all\"]\n"), Kind::BadValue, 3, "all");
    }

    #[test]
    fn workers_respond_directly_only_without_a_debugger() {
        let text = "mode = \"worker\"\nworker.script = \"w.php\"\nworker.direct = true\n\
                    debug.clients = [\"::1\"]\n";
        assert_error(&format!("{APP}{text}"), Kind::Conflict, 5, "because of `debug`");
    }
}
