//! `outboard lab`: stacks side by side on this machine. The library measures; here are the words.
//!
//! Exit codes: 0 done, 1 it failed, 2 a mistake in the arguments; with `--gate` 0 the same or
//! better, 3 worse, 4 undecided, 5 invalid.

pub(crate) mod arguments;

use crate::terminal::Terminal;
use arguments::{Lab, Output, Run, Work};
use outboard_lab::error::{Error, Result};
use outboard_lab::experiment::Experiment;
use outboard_lab::report::Report;
use outboard_lab::{janitor, run, table};
use std::io::Write as _;
use std::process::ExitCode;

pub(crate) fn run(arguments: &Lab, terminal: &Terminal) -> ExitCode {
    let ended = match &arguments.work {
        Work::List => Ok(list(terminal)),
        Work::Run(arguments) => measure(arguments, terminal),
        Work::Janitor => {
            janitor::run(std::io::stdin().lock());
            Ok(ExitCode::SUCCESS)
        }
    };
    ended.unwrap_or_else(|error: Error| terminal.fail(&error.to_string(), 1))
}

fn list(terminal: &Terminal) -> ExitCode {
    let mut page = String::new();
    for experiment in Experiment::all() {
        page += &format!("{:<12}{}\n", experiment.name(), experiment.about());
    }
    page += &terminal.dim("\noutboard lab run NAME…, or --all; --quick for a look\n");
    show(&page)
}

fn measure(arguments: &Run, terminal: &Terminal) -> Result<ExitCode> {
    let experiments = arguments.experiments();
    if experiments.is_empty() {
        let message = "name experiments, or say --all; `outboard lab list` shows them";
        return Ok(terminal.fail(message, 2));
    }
    let report = run::run(&experiments, arguments.effort(), &arguments.command())?;
    deliver(&report, &arguments.output)
}

/// Shows a report, writes it down, and turns it into an exit code.
fn deliver(report: &Report, output: &Output) -> Result<ExitCode> {
    if output.json {
        show(&(report.to_json() + "\n"));
    } else {
        show(&table::render(report));
    }
    if let Some(folder) = &output.out {
        report.write(folder)?;
        eprintln!("report: {}", folder.join("report.html").display());
    }
    Ok(if output.gate { ExitCode::from(report.gate()) } else { ExitCode::SUCCESS })
}

/// Prints it; a reader that has seen enough (`| head`) is no mistake.
fn show(page: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(page.as_bytes());
    ExitCode::SUCCESS
}
