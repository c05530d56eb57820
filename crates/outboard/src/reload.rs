//! `outboard reload` and `outboard stop`.

use crate::admin_client::{ask, default_socket};
use crate::cli::AdminArguments;
use crate::terminal::{Terminal, say};
use std::process::ExitCode;

pub(crate) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    tell(arguments, terminal, "/reload", |body| format!("generation {} serves", body["generation"]))
}

pub(crate) fn stop(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    tell(arguments, terminal, "/stop", |_| "stopping: requests that have begun are finished".into())
}

fn tell(
    arguments: &AdminArguments,
    terminal: &Terminal,
    path: &str,
    say: impl FnOnce(&serde_json::Value) -> String,
) -> ExitCode {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    match ask(&socket, "POST", path) {
        Err(message) => terminal.fail(&message, 1),
        Ok(answer) if arguments.json => {
            say!("{}", answer.body);
            ExitCode::from(u8::from(answer.status >= 300))
        }
        Ok(answer) if answer.status < 300 => {
            say!("{}", say(&answer.body));
            ExitCode::SUCCESS
        }
        Ok(answer) => {
            let message = answer.body["error"].as_str().unwrap_or("it was refused").to_owned();
            terminal.fail(&message, 1)
        }
    }
}
