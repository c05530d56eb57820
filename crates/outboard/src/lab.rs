//! `outboard lab`: stacks side by side on this machine. The library measures; here are the words.
//!
//! Exit codes: 0 done, 1 it failed, 2 a mistake in the arguments; with `--gate` 0 the same or
//! better, 3 worse, 4 undecided, 5 invalid.

pub(crate) mod arguments;

use crate::terminal::{self, Terminal};
use arguments::{Ab, Calibrate, Doctor, Lab, Names, Output, Run, Show, Work};
use outboard_lab::catalog::Kind;
use outboard_lab::error::{Error, Result};
use outboard_lab::experiment::Experiment;
use outboard_lab::lab::{Effort, Lab as Surroundings};
use outboard_lab::report::Report;
use outboard_lab::{ab, calibrate, doctor, janitor, markdown, null, run, table};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The exit code for stacks that must not be compared.
const INVALID: u8 = 5;

pub(crate) fn run(arguments: &Lab, terminal: &Terminal) -> ExitCode {
    let ended = match &arguments.work {
        Work::List(arguments) => Ok(list(arguments, terminal)),
        Work::Run(arguments) => measure(arguments, terminal),
        Work::Stacks(arguments) => Ok(stacks(arguments)),
        Work::Doctor(arguments) => examine(arguments, terminal),
        Work::Calibrate(arguments) => calibrate(arguments),
        Work::Ab(arguments) => compare(arguments),
        Work::Report(arguments) => show_again(arguments),
        Work::Janitor => {
            janitor::run(std::io::stdin().lock());
            Ok(ExitCode::SUCCESS)
        }
        Work::Null { address } => null::run(*address).map(|()| ExitCode::SUCCESS),
    };
    ended.unwrap_or_else(|error: Error| terminal.fail(&error.to_string(), 1))
}

fn list(arguments: &Names, terminal: &Terminal) -> ExitCode {
    if arguments.json {
        let one = |e: &Experiment| json!({"name": e.name(), "about": e.about()});
        return show_json(Experiment::all().iter().map(one).collect());
    }
    let mut page = String::new();
    for experiment in Experiment::all() {
        page += &format!("{:<12}{}\n", experiment.name(), experiment.about());
    }
    page += &terminal.dim("\noutboard lab run NAME…, or --all; --quick for a look\n");
    show(&page)
}

fn measure(arguments: &Run, terminal: &Terminal) -> Result<ExitCode> {
    let order = arguments.order();
    if order.experiments.is_empty() {
        let message = "name experiments, or say --all; `outboard lab list` shows them";
        return Ok(terminal.fail(message, 2));
    }
    let report = run::run(&order, arguments.effort(), &command_line())?;
    deliver(&report, &arguments.output)
}

fn stacks(arguments: &Names) -> ExitCode {
    if arguments.json {
        let one = |kind: &Kind| json!({"name": kind.name(), "about": kind.about(), "packages": kind.packages()});
        return show_json(Kind::all().iter().map(one).collect());
    }
    let mut page = String::new();
    for kind in Kind::all() {
        let packages = match kind.packages() {
            [] => String::new(),
            packages => format!(" ({})", packages.join(", ")),
        };
        page += &format!("{:<22}{}{packages}\n", kind.name(), kind.about());
    }
    show(&page)
}

fn examine(arguments: &Doctor, terminal: &Terminal) -> Result<ExitCode> {
    let mut lab = Surroundings::open(Effort::usual(true))?;
    let mut notes = Vec::new();
    let matrix = doctor::examine(&mut lab, &mut notes)?;
    if arguments.json {
        show(&(matrix.to_json() + "\n"));
    } else {
        show(&table::matrix(&matrix, |text| terminal.red(text)));
        notes.iter().for_each(|note| eprintln!("note: {note}"));
        matrix.findings().iter().for_each(|finding| eprintln!("{finding}"));
    }
    Ok(ExitCode::from(if matrix.findings().is_empty() { 0 } else { INVALID }))
}

fn calibrate(arguments: &Calibrate) -> Result<ExitCode> {
    let mut lab = Surroundings::open(arguments.effort())?;
    let found = calibrate::run(&mut lab, arguments.stack, arguments.times, &command_line())?;
    deliver(&found.report, &arguments.output)?;
    // Whether the machine tells equals apart is all that was asked.
    Ok(ExitCode::from(found.report.gate()))
}

fn compare(arguments: &Ab) -> Result<ExitCode> {
    let mut lab = Surroundings::open(arguments.effort())?;
    let report = ab::run(&mut lab, &arguments.duel(), &command_line())?;
    deliver(&report, &arguments.output)
}

fn show_again(arguments: &Show) -> Result<ExitCode> {
    let report = Report::read(&arguments.file)?;
    if arguments.md {
        return Ok(show(&markdown::render(&report)));
    }
    deliver(&report, &arguments.output)
}

/// What was typed, quoted where a shell would ask for it.
fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%".contains(c);
    let quoted = |word: String| match word.chars().all(plain) && !word.is_empty() {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    format!("outboard {}", words.join(" "))
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

fn show_json(values: Value) -> ExitCode {
    show(&format!("{values:#}\n"))
}

fn show(page: &str) -> ExitCode {
    terminal::show(page);
    ExitCode::SUCCESS
}
