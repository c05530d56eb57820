//! The users that PHP runs as, set for the files of every app.
//!
//! Called by [`super`] at the start and for every reload. Invariant: the gateway, which has the groups of all
//! apps' users, has for each app what only other apps' groups may read, and whose links it must not trust.

use outboard_config::Config;
use outboard_spawner::users::{self, User};
use outboard_trusted_path::Users;
use rustix::process::geteuid;
use std::sync::Arc;

/// Sets the user of the apps that name none to `default`. `is_own`: PHP runs as the user of this process.
pub(super) fn set(config: &mut Config, default: Option<&str>, is_own: bool) {
    for app in config.apps.iter_mut().filter(|app| app.user.is_none()) {
        app.user = default.map(str::to_owned);
    }
    let named =
        |app: &outboard_config::App| users::user(app.user.as_deref()?, app.group.as_deref()).ok();
    let of_apps: Vec<Option<User>> = config.apps.iter().map(named).collect();
    let own = is_own.then(|| geteuid().as_raw());
    let all = || of_apps.iter().flatten();
    let php: Vec<u32> = all().map(|user| user.uid.as_raw()).chain(own).collect();
    for (app, user) in config.apps.iter_mut().zip(&of_apps) {
        let is_in =
            |gid| user.as_ref().is_some_and(|own| own.gid == gid || own.groups.contains(&gid));
        let foreign = all().map(|other| other.gid).filter(|gid| !is_in(*gid));
        let foreign = foreign.map(|gid| gid.as_raw()).collect();
        app.static_files.users = Arc::new(Users::new(php.iter().copied(), foreign));
    }
}
