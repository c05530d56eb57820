//! Commands that are one call of the admin API: call, print a page or JSON, choose the exit code.
//!
//! Used by `status`, `reload`, `stop`, `opcache` and `cache`. Invariant: with `--json` the output is
//! the server's reply, also when it refuses; without, a refusal is one sentence on stderr. The exit
//! code is 0 if the server has carried out the request.

use crate::admin_client::{CallError, call, default_socket};
use crate::terminal::{Terminal, show};
use clap::Args;
use outboard_admin_api::{Endpoint, Failure};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct AdminArguments {
    /// The admin socket of the server.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Calls `endpoint` and prints the reply, as JSON or as `page` writes it.
pub(crate) fn run<E: Endpoint>(
    arguments: &AdminArguments,
    terminal: &Terminal,
    endpoint: &E,
    page: impl FnOnce(&mut String, &E::Reply) -> fmt::Result,
) -> ExitCode {
    run_checked(arguments, terminal, endpoint, |out, reply| {
        page(out, reply)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// As [`run`]; `page` also chooses the exit code.
pub(crate) fn run_checked<E: Endpoint>(
    arguments: &AdminArguments,
    terminal: &Terminal,
    endpoint: &E,
    page: impl FnOnce(&mut String, &E::Reply) -> Result<ExitCode, fmt::Error>,
) -> ExitCode {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    match call(&socket, endpoint) {
        Ok(reply) => {
            let mut out = String::new();
            let code = page(&mut out, &reply).expect("writing to a String does not fail");
            show(&if arguments.json { json(&reply) } else { out });
            code
        }
        Err(CallError::Refused(error)) if arguments.json => {
            show(&json(&Failure { error }));
            ExitCode::FAILURE
        }
        Err(error) => terminal.fail(&error.to_string(), 1),
    }
}

fn json(reply: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(reply).expect("replies have text keys only");
    text + "\n"
}
