//! `outboard list` and `outboard status NAME…`.

use super::directories::Directories;
use super::pid_file::Presence;
use super::{Named, selected};
use crate::admin_client::call;
use crate::instances::InstanceDirs;
use crate::instances::InstanceSelector;
use crate::status;
use crate::terminal::{Terminal, show};
use clap::Args;
use outboard_admin_api::status::{Get, Status};
use outboard_config::Config;
use serde_json::{Value, json};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) dirs: InstanceDirs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Exit codes of `status` (Linux Standard Base, "Init Script Actions").
const RUNNING: u8 = 0;
const DEAD: u8 = 1;
const STOPPED: u8 = 3;
const UNKNOWN: u8 = 4;

/// The status of a server.
struct Seen {
    server: Named,
    code: u8,
    pid: Option<i32>,
    /// Its status, if it runs and responds.
    status: Option<Status>,
    /// Its configuration, or the error.
    config: Result<Config, String>,
    /// Why its status is unknown.
    trouble: Option<String>,
}

impl Seen {
    fn of(server: Named) -> Self {
        let config = Config::load(&server.config).map_err(|diagnostics| diagnostics.to_string());
        let (mut code, mut pid, mut status, mut trouble) = (UNKNOWN, None, None, None);
        match server.presence() {
            Err(error) => trouble = Some(format!("{}: {error}", server.pid_file().display())),
            Ok(Presence::Stopped) => code = STOPPED,
            Ok(Presence::Dead) => code = DEAD,
            Ok(Presence::Running(owner)) => {
                pid = Some(owner.pid);
                match call(&server.admin_socket(), &Get {}) {
                    Ok(found) => (code, status) = (RUNNING, Some(found)),
                    Err(error) => trouble = Some(error.to_string()),
                }
            }
        }
        Self { server, code, pid, status, config, trouble }
    }

    fn state(&self) -> &'static str {
        match self.code {
            RUNNING => self.status.as_ref().map_or("RUNNING", status::state),
            DEAD => "DEAD",
            STOPPED => "STOPPED",
            _ => "UNKNOWN",
        }
    }

    fn environment(&self) -> String {
        let running = self.status.as_ref().map(|status| &status.environment);
        match (running, &self.config) {
            (Some(environment), _) => environment.clone(),
            (None, Ok(config)) => config.environment().to_string(),
            (None, Err(_)) => "?".to_owned(),
        }
    }

    /// Its addresses, or those of its configuration.
    fn listeners(&self) -> String {
        let running = self.status.as_ref().map(|status| &status.listeners);
        let all: Vec<String> = match (running, &self.config) {
            (Some(listeners), _) => listeners
                .iter()
                .filter(|at| !at.ends_with(&format!("/{}.sock", self.server.name)))
                .cloned()
                .collect(),
            (None, Ok(config)) => {
                config.listeners.iter().map(|listener| listener.address.to_string()).collect()
            }
            (None, Err(_)) => vec!["its file has errors: run outboard check".to_owned()],
        };
        all.join(", ")
    }

    fn as_json(&self) -> Value {
        json!({
            "name": self.server.name,
            "state": self.state(),
            "environment": self.environment(),
            "pid": self.pid,
            "config": self.server.config,
            "config_error": self.config.as_ref().err(),
            "admin_socket": self.server.admin_socket(),
            "trouble": self.trouble,
            "status": self.status,
        })
    }
}

/// `outboard list`
pub(crate) fn list(arguments: &ListArguments, terminal: &Terminal) -> ExitCode {
    let servers = Directories::of(&arguments.dirs).and_then(|directories| directories.servers());
    let seen: Vec<Seen> = match servers {
        Ok(servers) => servers.into_iter().map(Seen::of).collect(),
        Err(message) => return terminal.fail(&message, 2),
    };
    if arguments.json {
        return show_json(&seen);
    }
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write_list(&mut page, &seen, terminal);
    show(&page);
    ExitCode::SUCCESS
}

fn write_list(page: &mut String, all: &[Seen], terminal: &Terminal) -> fmt::Result {
    let width = all.iter().map(|seen| seen.server.name.len()).max().unwrap_or(0).max(4);
    writeln!(
        page,
        "{:<width$}  {:<8}  {:<11}  {:>8}  LISTENING",
        "NAME", "STATE", "ENVIRONMENT", "PID"
    )?;
    for seen in all {
        let pid = seen.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string());
        let name = terminal.bold(&format!("{:<width$}", seen.server.name));
        let (state, environment) = (seen.state(), seen.environment());
        writeln!(page, "{name}  {state:<8}  {environment:<11}  {pid:>8}  {}", seen.listeners())?;
    }
    Ok(())
}

/// `outboard status NAME…`
pub(crate) fn status(pick: &InstanceSelector, json: bool, terminal: &Terminal) -> ExitCode {
    let seen: Vec<Seen> = match selected(pick) {
        Ok(servers) => servers.into_iter().map(Seen::of).collect(),
        Err(message) => return terminal.fail(&message, UNKNOWN),
    };
    let code = seen.iter().map(|seen| seen.code).max().unwrap_or(UNKNOWN);
    if json {
        show_json(&seen);
        return ExitCode::from(code);
    }
    let mut page = String::new();
    for (index, one) in seen.iter().enumerate() {
        if index > 0 {
            page.push('\n');
        }
        // Writing to a String does not fail.
        let _ = write_server(&mut page, one, terminal);
    }
    show(&page);
    ExitCode::from(code)
}

fn write_server(page: &mut String, seen: &Seen, terminal: &Terminal) -> fmt::Result {
    let name = terminal.bold(&seen.server.name);
    let environment = seen.environment();
    if let Some(status) = &seen.status {
        writeln!(page, "{name}  {environment}  {}", seen.server.config.display())?;
        return status::write(page, status, terminal);
    }
    let state = terminal.bold(seen.state());
    writeln!(page, "{name}  {environment}  {}\n{state}", seen.server.config.display())?;
    match (seen.code, &seen.trouble) {
        (_, Some(trouble)) => writeln!(page, "{trouble}")?,
        (DEAD, None) => writeln!(page, "it was killed; `outboard start {}`", seen.server.name)?,
        _ => {}
    }
    if let Err(errors) = &seen.config {
        writeln!(page, "{}", errors.trim_end())?;
    }
    Ok(())
}

fn show_json(seen: &[Seen]) -> ExitCode {
    let all: Vec<Value> = seen.iter().map(Seen::as_json).collect();
    show(&format!("{:#}\n", json!({ "servers": all })));
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests;
