//! `outboard check` and `outboard schema`.

use crate::terminal::{Terminal, say};
use crate::{data_directories, host_machine};
use clap::Args;
use outboard_config::{App, Config, Diagnostics, HtaccessFiles};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// More users of a rule are counted only.
const WEAK_USERS_SHOWN: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The configuration file, or the directory of an `outboard.toml`.
    #[arg(default_value = "outboard.toml")]
    file: PathBuf,
    /// The same, as for `outboard serve`.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Print errors and warnings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArguments {
    pub(crate) fn file(&self) -> PathBuf {
        let file = self.config.as_ref().unwrap_or(&self.file);
        if file.is_dir() { file.join("outboard.toml") } else { file.clone() }
    }
}

pub(crate) fn run(arguments: &CheckArguments, terminal: &Terminal) -> ExitCode {
    let file = &arguments.file();
    let config = match Config::load(file) {
        Ok(config) => config,
        Err(diagnostics) => return refuse(&diagnostics, arguments.json, terminal),
    };
    if let Err(diagnostics) = host_machine::check(&config, file) {
        return refuse(&diagnostics, arguments.json, terminal);
    }
    match outboard_gateway::server::check(&config) {
        Ok(()) => {
            if arguments.json {
                let apps = || config.apps.iter();
                let warnings: Vec<Value> = apps()
                    .filter_map(htaccess_warning)
                    .chain(apps().flat_map(data_warnings))
                    .chain(apps().flat_map(|app| password_warnings(file, app)))
                    .collect();
                let valid = json!({"file": file, "valid": true, "diagnostics": warnings});
                say!("{valid:#}");
            } else {
                let apps: Vec<_> = config.apps.iter().map(|app| app.name.as_str()).collect();
                let listeners: Vec<_> =
                    config.listeners.iter().map(|listener| listener.address.to_string()).collect();
                say!(
                    "{} is valid: {} on {}",
                    file.display(),
                    apps.join(", "),
                    listeners.join(", ")
                );
                config.apps.iter().for_each(report_htaccess);
                config.apps.iter().for_each(report_data);
                config.apps.iter().for_each(report_passwords);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let error = Diagnostics::unusable(file, error.to_string());
            refuse(&error, arguments.json, terminal)
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

/// Access restrictions in `.htaccess` files, as a diagnostic of the app's root.
fn htaccess_warning(app: &App) -> Option<Value> {
    let found = HtaccessFiles::below(&app.root).filter(HtaccessFiles::is_notable)?;
    let restricting: Vec<&str> = found.restricting.iter().map(String::as_str).collect();
    Some(json!({
        "severity": "warning", "kind": "htaccess", "file": app.root, "line": null, "column": null,
        "length": null, "text": null, "key": format!("app.{}", app.name),
        "message": found.summary(app.static_files.htaccess),
        "hint": format!("review {}", restricting.join(", ")),
        "not_applied": found.not_applied,
    }))
}

/// Reports access restrictions in `.htaccess` files.
fn report_htaccess(app: &App) {
    let Some(found) = HtaccessFiles::below(&app.root).filter(HtaccessFiles::is_notable) else {
        return;
    };
    let summary = found.summary(app.static_files.htaccess);
    say!("[app.{}]: {summary} ({})", app.name, app.root.display());
    found.restricting.iter().for_each(|file| say!("    {file}"));
    if !found.not_applied.is_empty() {
        say!("  without effect here, write [[app.{}.access]] where it matters:", app.name);
        found.not_applied.iter().for_each(|line| say!("    {line}"));
    }
}

/// Data that PHP cannot write to in its sandbox, as diagnostics of the files that name it.
fn data_warnings(app: &App) -> Vec<Value> {
    let warning = |(path, file): (PathBuf, PathBuf)| {
        json!({
            "severity": "warning", "kind": "sandbox", "file": file, "line": null, "column": null,
            "length": null, "text": null, "key": format!("app.{}.sandbox", app.name),
            "message": format!("PHP may not write to {} in its sandbox", path.display()),
            "hint": format!("add write_paths = [{path:?}]"),
        })
    };
    data_directories::denied(app).into_iter().map(warning).collect()
}

/// Reports such data.
fn report_data(app: &App) {
    for (path, file) in data_directories::denied(app) {
        let (name, place) = (&app.name, file.display());
        say!("[app.{name}]: PHP may not write to {} in its sandbox ({place})", path.display());
        say!("  to permit it: add write_paths = [{path:?}] to [app.{name}.sandbox]");
    }
}

/// Rules whose users have passwords that are guessed fast by their hashes: the key, and the users.
fn weak_passwords(app: &App) -> impl Iterator<Item = (String, String)> {
    let rules = app.access.rules.iter().enumerate();
    rules.filter_map(|(index, rule)| {
        let weak = rule.basic_auth.as_ref()?.users.weak();
        let (shown, more) = weak.split_at(weak.len().min(WEAK_USERS_SHOWN));
        let named: Vec<_> = shown.iter().map(|(name, kind)| format!("`{name}` ({kind})")).collect();
        let more = if more.is_empty() { String::new() } else { format!(" and {}", more.len()) };
        let key = format!("app.{}.access.{index}.basic_auth", app.name);
        (!weak.is_empty()).then(|| (key, named.join(", ") + &more))
    })
}

/// Such rules, as diagnostics.
fn password_warnings(file: &Path, app: &App) -> Vec<Value> {
    let warning = |(key, users): (String, String)| {
        json!({
            "severity": "warning", "kind": "password", "file": file, "line": null, "column": null,
            "length": null, "text": null, "key": key,
            "message": format!("the hashes of these users are guessed fast: {users}"),
            "hint": "hash their passwords with bcrypt: htpasswd -B FILE NAME",
        })
    };
    weak_passwords(app).map(warning).collect()
}

/// Reports such rules.
fn report_passwords(app: &App) {
    for (key, users) in weak_passwords(app) {
        say!("[{key}]: the hashes of these users are guessed fast: {users}");
        say!("  hash their passwords with bcrypt: htpasswd -B FILE NAME");
    }
}

pub(crate) fn print_schema() -> ExitCode {
    say!("{:#}", outboard_config::schema());
    ExitCode::SUCCESS
}
