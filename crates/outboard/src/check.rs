//! `outboard check` and `outboard schema`.

use crate::cli::CheckArguments;
use crate::terminal::Terminal;
use outboard_config::Config;
use std::process::ExitCode;

pub(crate) fn run(arguments: &CheckArguments, terminal: &Terminal) -> ExitCode {
    match Config::load(&arguments.file) {
        Ok(config) => {
            if arguments.json {
                println!("{}", serde_json::json!({"file": arguments.file, "diagnostics": []}));
            } else {
                let apps: Vec<_> = config.apps.iter().map(|app| app.name.as_str()).collect();
                let listeners: Vec<_> =
                    config.listeners.iter().map(|listener| listener.address.to_string()).collect();
                println!(
                    "{} is fine: {} on {}",
                    arguments.file.display(),
                    apps.join(", "),
                    listeners.join(", ")
                );
            }
            ExitCode::SUCCESS
        }
        Err(diagnostics) => {
            if arguments.json {
                let json = serde_json::to_string_pretty(&diagnostics);
                println!("{}", json.expect("diagnostics are plain data"));
            } else {
                eprint!("{}", diagnostics.render(terminal.color_err));
            }
            ExitCode::from(2)
        }
    }
}

pub(crate) fn print_schema() -> ExitCode {
    println!("{:#}", outboard_config::schema());
    ExitCode::SUCCESS
}
