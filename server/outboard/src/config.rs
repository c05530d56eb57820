//! `outboard config show`: the effective configuration of a file or of a running server.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::{Terminal, say, show};
use clap::{Args, Subcommand};
use outboard_admin_api::config::{Configuration, Get, Setting};
use outboard_config::Config;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print every key with its value. Secrets are replaced by `[redacted]`.
    Show(ConfigShowArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShowArguments {
    /// The configuration file.
    #[arg(default_value = "outboard.toml", conflicts_with_all = ["running", "admin"])]
    pub(crate) file: PathBuf,
    /// The configuration of the running server instead of a file; implied by --admin.
    #[arg(long)]
    pub(crate) running: bool,
    /// Print where each value comes from: file and line, environment, default or command line.
    #[arg(long)]
    pub(crate) origin: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

pub(crate) fn run(action: &ConfigAction, terminal: &Terminal) -> ExitCode {
    let ConfigAction::Show(arguments) = action;
    if arguments.running || arguments.admin.admin.is_some() {
        return admin::run(&arguments.admin, terminal, &Get {}, |page, configuration| {
            write_page(page, configuration, arguments.origin)
        });
    }
    of_file(arguments, terminal)
}

fn of_file(arguments: &ConfigShowArguments, terminal: &Terminal) -> ExitCode {
    let config = match Config::load(&arguments.file) {
        Ok(config) => config,
        Err(diagnostics) => {
            eprint!("{}", diagnostics.render(terminal.color_err));
            return ExitCode::from(2);
        }
    };
    let configuration = outboard_gateway::configuration::of(&config);
    if arguments.admin.json {
        say!("{}", serde_json::to_string_pretty(&configuration).expect("it has text keys only"));
        return ExitCode::SUCCESS;
    }
    let mut page = String::new();
    write_page(&mut page, &configuration, arguments.origin).expect("writing to a String succeeds");
    show(&page);
    ExitCode::SUCCESS
}

fn write_page(page: &mut String, configuration: &Configuration, origin: bool) -> fmt::Result {
    for setting in &configuration.settings {
        match origin {
            true => writeln!(page, "{} = {}  # {}", setting.key, setting.value, place(setting))?,
            false => writeln!(page, "{} = {}", setting.key, setting.value)?,
        }
    }
    Ok(())
}

/// "outboard.toml:3", "environment DB_HOST (outboard.toml:3)", "default".
fn place(setting: &Setting) -> String {
    let at = match (&setting.file, setting.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => return setting.origin.replace('-', " "),
    };
    if setting.sources.is_empty() {
        return at;
    }
    format!("{} {} ({at})", setting.origin.replace('-', " "), setting.sources.join(", "))
}

#[cfg(test)]
mod tests;
