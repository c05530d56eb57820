//! `outboard snapshot`: retires the snapshots of a running server's apps.

use crate::admin;
use crate::cli::SnapshotAction;
use crate::terminal::Terminal;
use outboard_admin_api::snapshot::{Retire, Retired};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

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
