//! [`Target`]: the servers that `status`, `reload` and `stop` apply to.

use crate::admin::AdminArguments;
use crate::instances::InstanceSelector;
use crate::named::directories;
use clap::Args;

/// Named servers, or the server of an admin socket.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    pub(crate) pick: InstanceSelector,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

/// See the module.
pub(crate) enum Target<'a> {
    /// Named servers.
    Named(&'a InstanceSelector),
    /// The server of an admin socket.
    Served(&'a AdminArguments),
}

impl<'a> Target<'a> {
    /// Without names and without a configuration directory, this is the server that
    /// `outboard serve` runs.
    ///
    /// # Errors
    /// Names and a socket at the same time.
    pub(crate) fn of(arguments: &'a ServerArguments) -> Result<Self, String> {
        let pick = &arguments.pick;
        let says_named = !pick.names.is_empty() || pick.dirs.conf_dir.is_some();
        match &arguments.admin.admin {
            Some(_) if !pick.names.is_empty() => {
                let names = pick.names.join(", ");
                Err(format!("--admin selects one server and {names} another: remove one of them"))
            }
            None if says_named || directories::found().is_some() => Ok(Self::Named(pick)),
            _ => Ok(Self::Served(&arguments.admin)),
        }
    }
}
