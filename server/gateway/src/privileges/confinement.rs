//! What the gateway gives up in addition to root: programs, devices, signals to others, and the parts of the
//! kernel that no server needs.
//!
//! Called by [`super`] once the gateway has become its own user, while it has one thread; the others
//! inherit it. Invariant: nothing here depends on paths or addresses of the configuration, so that a reload
//! may name new ones. What the gateway may read and write is decided by its user. The one thing that a
//! reload cannot add is a program for certificates (`acme.dns_hook`).

use outboard_config::Config;
use outboard_sandbox::{Enforced, Filter, Profile, confine_server};

/// Gives it up. The result is a warning if the kernel does not honor all of it.
pub(super) fn enter(config: &Config) -> Option<String> {
    let starts_programs = config.acme.as_ref().is_some_and(|acme| acme.dns_hook.is_some());
    let profile = if starts_programs { Profile::ServerWithPrograms } else { Profile::Server };
    let files = confine_server(starts_programs);
    let calls = Filter::new(profile).and_then(|filter| filter.apply());
    let missing = match (&files, &calls) {
        (_, Err(error)) | (Err(error), _) => error.to_string(),
        (Ok(Enforced::Not), _) => "the kernel has no Landlock".to_owned(),
        _ => return None,
    };
    Some(format!("{missing}: the gateway has the rights of its user only as a limit"))
}
