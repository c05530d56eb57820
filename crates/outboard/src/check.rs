//! `outboard check` and `outboard schema`.

use crate::cli::CheckArguments;
use crate::terminal::{Terminal, say};
use outboard_config::{Config, Diagnostics};
use std::process::ExitCode;

pub(crate) fn run(arguments: &CheckArguments, terminal: &Terminal) -> ExitCode {
    let config = match Config::load(&arguments.file) {
        Ok(config) => config,
        Err(diagnostics) => return refuse(&diagnostics, arguments.json, terminal),
    };
    match outboard_gateway::server::check(&config) {
        Ok(()) => {
            if arguments.json {
                say!("{}", serde_json::json!({"file": arguments.file, "diagnostics": []}));
            } else {
                let apps: Vec<_> = config.apps.iter().map(|app| app.name.as_str()).collect();
                let listeners: Vec<_> =
                    config.listeners.iter().map(|listener| listener.address.to_string()).collect();
                say!(
                    "{} is fine: {} on {}",
                    arguments.file.display(),
                    apps.join(", "),
                    listeners.join(", ")
                );
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let mistake = Diagnostics::unusable(&arguments.file, error.to_string());
            refuse(&mistake, arguments.json, terminal)
        }
    }
}

fn refuse(diagnostics: &Diagnostics, json: bool, terminal: &Terminal) -> ExitCode {
    if json {
        let json = serde_json::to_string_pretty(diagnostics);
        say!("{}", json.expect("diagnostics are plain data"));
    } else {
        eprint!("{}", diagnostics.render(terminal.color_err));
    }
    ExitCode::from(2)
}

pub(crate) fn print_schema() -> ExitCode {
    say!("{:#}", outboard_config::schema());
    ExitCode::SUCCESS
}
