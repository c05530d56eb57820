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

use crate::cli::{DoctorArguments, DoctorCommand, StateArguments};
use crate::php_hosts;
use crate::terminal::{Terminal, say};
use app::{Examined, Failure};
use findings::Finding;
use std::process::ExitCode;

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
