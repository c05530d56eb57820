//! `outboard reload`, `outboard upgrade` and `outboard stop`.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use outboard_admin_api::server::{Reload, Stop, Upgrade};
use std::fmt::Write as _;
use std::process::ExitCode;

pub(crate) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    admin::run(arguments, terminal, &Reload {}, |page, reloaded| {
        writeln!(page, "generation {} is active", reloaded.generation)
    })
}

pub(crate) fn upgrade(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    admin::run(arguments, terminal, &Upgrade {}, |page, upgraded| {
        writeln!(page, "process {} serves now", upgraded.pid)
    })
}

pub(crate) fn stop(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    admin::run(arguments, terminal, &Stop {}, |page, _| {
        writeln!(page, "stopping after running requests have finished")
    })
}
