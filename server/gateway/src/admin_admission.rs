//! Access to the admin socket, by the user of the peer process.
//!
//! Called for each such connection before anything is read from it. Invariant: a user that only
//! runs PHP is refused even if the mode of the socket file admits it.

use outboard_config::Config;
use outboard_reactor::Stream;
use outboard_spawner::users;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

/// Whether the peer may use the admin socket.
///
/// # Errors
/// The refused user and process, for the log.
pub(crate) fn check(config: &Config, stream: &Stream) -> Result<(), String> {
    let peer = socket_peercred(stream).map_err(|error| format!("admin socket: {error}"))?;
    if peer.uid.is_root() || peer.uid == geteuid() {
        return Ok(());
    }
    // The mode of the file admits members of the group.
    if config.admin.group.is_some() && !is_of_an_app(config, peer.uid) {
        return Ok(());
    }
    Err(format!("admin socket: user {} (process {}) was refused", peer.uid, peer.pid))
}

fn is_of_an_app(config: &Config, uid: Uid) -> bool {
    let users = config.apps.iter().filter_map(|app| app.user.as_deref());
    users.into_iter().any(|name| users::user(name, None).is_ok_and(|user| user.uid == uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn users_of_apps_are_known() {
        let text = "user = \"daemon\"\n[app.site]\nroot = \"/tmp\"\n";
        let config = Config::parse(text, Path::new("/tmp/test.toml")).expect("a valid file");
        let daemon = users::user("daemon", None).expect("every Debian has it").uid;
        assert!(is_of_an_app(&config, daemon));
        assert!(!is_of_an_app(&config, Uid::from_raw(4_000_000)));
    }
}
