//! `outboard check` and `outboard schema`.

use crate::cli::CheckArguments;
use crate::terminal::Terminal;
use outboard_config::{App, Config, Htaccess};
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
                config.apps.iter().for_each(tell_of_htaccess);
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

/// What Apache would have kept shut.
fn tell_of_htaccess(app: &App) {
    let Some(found) = Htaccess::below(&app.root) else { return };
    let lines = found.lines_beside(&app.deny);
    if lines.is_empty() && found.look_at.is_empty() {
        return;
    }
    println!("[app.{}]: {} ({})", app.name, found.summary(), app.root.display());
    if !lines.is_empty() {
        println!("  what they deny, for this file:");
        lines.iter().for_each(|line| println!("    {line}"));
    }
    if !found.look_at.is_empty() {
        let files: Vec<&str> = found.look_at.iter().map(String::as_str).collect();
        println!("  to be looked at by hand: {}", files.join(", "));
    }
}

pub(crate) fn print_schema() -> ExitCode {
    println!("{:#}", outboard_config::schema());
    ExitCode::SUCCESS
}
