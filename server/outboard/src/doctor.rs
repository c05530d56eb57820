//! `outboard doctor state`: runs an application's requests twice and reports the state they left; and
//! `outboard doctor snapshots`.
//!
//! The PHP host records the state that each request finds (`sapi/doctor/doctor.c`); [`findings`]
//! compares. Invariants: one worker handles all requests, in order; nothing of the server stays
//! when the command ends.

mod app;
mod findings;
mod report;
mod snapshots;

use crate::admin::AdminArguments;
use crate::php_hosts;
use crate::terminal::{Terminal, say};
use app::{Examined, Failure};
use clap::{Args, Subcommand};
use findings::Finding;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(subcommand)]
    pub(crate) command: DoctorCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DoctorCommand {
    /// Find state that requests leave in a worker, with file and line.
    ///
    /// Boots the application in worker mode, sends the requests twice, and compares the state after
    /// each round: globals, static properties and variables, variables captured by closures,
    /// constants, handlers, ini values, environment, open resources. Exit code 0: no state was
    /// left, 1: state was left, or a request failed, 2: an error in arguments or configuration.
    State(StateArguments),
    /// Name what scripts read of a request before Outboard\snapshot(), with file and line.
    ///
    /// Queries a running server. A request is handled from a snapshot if it agrees with what was read. Exit code
    /// 0: all scripts that call `snapshot()` have one, 1: one has none, for the reason that is printed.
    Snapshots(AdminArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// The directory of the application, with outboard.toml, worker.php or a front controller.
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file; its first app in worker mode is examined.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A request to send, by method and path. May be given more than once.
    #[arg(long, short, value_name = "METHOD PATH", default_value = "GET /")]
    pub(crate) request: Vec<String>,
    /// Ignore findings whose names start with this, such as `App\Cache::$`. May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) ignore: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
}

pub(crate) fn run(arguments: &DoctorArguments, terminal: &Terminal) -> ExitCode {
    let state = match &arguments.command {
        DoctorCommand::State(state) => state,
        DoctorCommand::Snapshots(admin) => return snapshots::run(admin, terminal),
    };
    match examine(state) {
        Ok(examined) => report(state, &examined, terminal),
        Err(Failure::User(message)) => terminal.fail(&message, 2),
        Err(Failure::Config(diagnostics)) => {
            eprint!("{}", diagnostics.render(terminal.color_err));
            ExitCode::from(2)
        }
        Err(Failure::Server(message)) => terminal.fail(&message, 1),
    }
}

/// The result.
struct Outcome {
    findings: Vec<Finding>,
    /// Requests with a status of 500 or above, with the status.
    failed: Vec<(String, u16)>,
    /// The output of the server, if some have failed.
    log: String,
}

fn examine(arguments: &StateArguments) -> Result<Outcome, Failure> {
    let requests: Vec<app::Request> =
        arguments.request.iter().map(|text| app::Request::parse(text)).collect::<Result<_, _>>()?;
    let host = arguments.php_host.clone().unwrap_or_else(php_hosts::default);
    let config = app::config(arguments.dir.as_deref(), arguments.config.as_deref())?;
    let Examined { report, log, statuses } = app::examine(config, host, &requests)?;
    let found = report::snapshots(&report);
    let found = findings::compare(&found, requests.len()).ok_or_else(|| {
        Failure::Server("the worker did not report its state: it did not respond".into())
    })?;
    let is_wanted = |finding: &Finding| {
        !arguments.ignore.iter().any(|ignored| finding.name.starts_with(ignored.as_str()))
    };
    let failed = requests.iter().zip(statuses).filter(|(_, status)| *status >= 500);
    let failed: Vec<_> = failed.map(|(request, status)| (request.to_string(), status)).collect();
    Ok(Outcome {
        findings: found.into_iter().filter(is_wanted).collect(),
        log: if failed.is_empty() { String::new() } else { log },
        failed,
    })
}

fn report(arguments: &StateArguments, outcome: &Outcome, terminal: &Terminal) -> ExitCode {
    if arguments.json {
        let failed: Vec<_> = outcome
            .failed
            .iter()
            .map(|(request, status)| serde_json::json!({"request": request, "status": status}))
            .collect();
        let findings: Vec<_> = outcome.findings.iter().map(Finding::json).collect();
        say!("{:#}", serde_json::json!({"findings": findings, "failed": failed}));
    } else {
        eprint!("{}", outcome.log);
        for (request, status) in &outcome.failed {
            say!("{request} got status {status}");
        }
        for finding in &outcome.findings {
            say!("{}", finding.text(terminal));
        }
        match outcome.findings.len() {
            0 => say!("clean: the requests left no state"),
            1 => say!("1 finding"),
            count => say!("{count} findings"),
        }
    }
    ExitCode::from(u8::from(!outcome.findings.is_empty() || !outcome.failed.is_empty()))
}
