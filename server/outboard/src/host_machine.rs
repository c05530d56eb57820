//! What a configuration names on the machine that starts it: users, groups and PHP hosts.
//!
//! Called by `outboard check`, since a server finds out only when it starts PHP. Invariant: each error is at the place
//! of its setting.

use crate::php_hosts;
use outboard_config::{Config, Diagnostics, Unusable};
use outboard_spawner::users;
use std::path::Path;

/// Whether what it names is there.
pub(crate) fn check(config: &Config, file: &Path) -> Result<(), Diagnostics> {
    let mut missing = Vec::new();
    let mut look = |place: &str, user: Option<&String>, group: Option<&String>| {
        let no_user = user.and_then(|name| users::user(name, None).err());
        let no_group = group.and_then(|name| users::group_id(name).err());
        for (key, message, command) in
            [("user", no_user, "useradd"), ("group", no_group, "groupadd")]
        {
            missing.extend(message.map(|message| Unusable {
                key: format!("{place}{key}"),
                message,
                hint: format!(
                    "write a {key} of this machine, or create it: {command} --system NAME"
                ),
            }));
        }
    };
    look("", config.user.as_ref(), config.group.as_ref());
    for app in &config.apps {
        let own = |name: &Option<String>, general: &Option<String>| {
            name.clone().filter(|_| name != general)
        };
        let (user, group) = (own(&app.user, &config.user), own(&app.group, &config.group));
        look(&format!("app.{}.", app.name), user.as_ref(), group.as_ref());
    }
    for app in &config.apps {
        let Some(version) = &app.php.version else { continue };
        let host = php_hosts::of_version(version);
        if !host.exists() {
            missing.push(Unusable {
                key: format!("app.{}.php.version", app.name),
                message: format!("PHP {version} is not installed: {} is missing", host.display()),
                hint: php_hosts::how_to_install(version),
            });
        }
    }
    config.refuse(file, missing)
}
