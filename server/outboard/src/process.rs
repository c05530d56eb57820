//! `outboard process`: orders to the processes of a running server's apps.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use clap::Subcommand;
use outboard_admin_api::processes::Restart;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum ProcessAction {
    /// Programs end as by a stop, and begin again, as after a deployment. Each begins when it has ended.
    Restart {
        /// Only those of this app [default: of all].
        app: Option<String>,
        /// Only this process.
        process: Option<String>,
        #[command(flatten)]
        admin: AdminArguments,
    },
}

pub(crate) fn run(action: &ProcessAction, terminal: &Terminal) -> ExitCode {
    let ProcessAction::Restart { app, process, admin } = action;
    let restart = Restart { app: app.clone(), process: process.clone() };
    admin::run(admin, terminal, &restart, |page, restarted| {
        writeln!(page, "{} instances end and begin again", restarted.instances)
    })
}
