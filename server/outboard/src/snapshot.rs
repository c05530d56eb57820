//! `outboard snapshot`: retires the snapshots of a running server's apps.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use clap::Subcommand;
use outboard_admin_api::snapshot::{Retire, Retired};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotAction {
    /// Requests that begin after this command are served by new snapshots. Those in progress finish.
    Retire {
        /// Only those of this app [default: of all].
        app: Option<String>,
        /// Only those that depend on this key (Outboard\snapshot_depends).
        #[arg(long)]
        key: Option<String>,
        #[command(flatten)]
        admin: AdminArguments,
    },
}

pub(crate) fn run(action: &SnapshotAction, terminal: &Terminal) -> ExitCode {
    match action {
        SnapshotAction::Retire { app, key, admin } => {
            let retire = Retire { app: app.clone(), key: key.clone() };
            admin::run(admin, terminal, &retire, write_retired)
        }
    }
}

fn write_retired(page: &mut String, retired: &Retired) -> fmt::Result {
    for (app, count) in &retired.apps {
        writeln!(page, "{app}  {count} retired")?;
    }
    Ok(())
}
