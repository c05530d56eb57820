//! The command line of `outboard-lab`.
//!
//! Exit codes: 0 done, 1 it failed, 2 a mistake in the arguments; with `--gate` 0 the same or
//! better, 3 worse, 4 undecided, 5 invalid; those of `bench` are its own.

mod arguments;

pub use arguments::Cli;

use std::process::ExitCode;

use arguments::{
    Ab, Calibrate, Command, Doctor, FootprintArguments, Instructions, Names, Output, Run, Show,
};
use clap::{ColorChoice, CommandFactory, Parser};
use serde_json::{Value, json};

use crate::catalog::Kind;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::lab::{Effort, Lab};
use crate::report::Report;
use crate::report_files::write_report;
use crate::terminal::{Terminal, fail, show};
use crate::{
    ab, bench, calibrate, doctor, footprint, instructions, janitor, markdown, null, run, table,
};

/// The exit code for stacks that must not be compared.
const INVALID: u8 = 5;

/// Runs the command that was typed.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Bench(arguments) => return bench::run(*arguments, Terminal::new(cli.color)),
        Command::List(arguments) => Ok(list(&arguments)),
        Command::Run(arguments) => measure(&arguments),
        Command::Stacks(arguments) => Ok(stacks(&arguments)),
        Command::Doctor(arguments) => examine(&arguments, cli.color),
        Command::Calibrate(arguments) => calibrate(&arguments),
        Command::Ab(arguments) => compare(&arguments),
        Command::Instructions(arguments) => count(&arguments),
        Command::Footprint(arguments) => step(&arguments),
        Command::Report(arguments) => show_again(&arguments),
        Command::Completions { shell } => Ok(complete(shell)),
        Command::Man { dir } => Ok(write_pages(&dir)),
        Command::Janitor => {
            janitor::run(std::io::stdin().lock());
            Ok(ExitCode::SUCCESS)
        }
        Command::Null { address } => null::run(address).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error: Error| fail(&error.to_string(), 1))
}

fn list(arguments: &Names) -> ExitCode {
    if arguments.json {
        let one = |e: &Experiment| json!({"name": e.name(), "about": e.about()});
        return show_json(Experiment::all().iter().map(one).collect());
    }
    let mut page = String::new();
    for experiment in Experiment::all() {
        page += &format!("{:<12}{}\n", experiment.name(), experiment.about());
    }
    page += "\noutboard lab run NAME…, or --all; --quick for a short look\n";
    shown(&page)
}

fn measure(arguments: &Run) -> Result<ExitCode> {
    let order = arguments.order();
    if order.experiments.is_empty() {
        let message = "name experiments, or say --all; `outboard lab list` shows them";
        return Ok(fail(message, 2));
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
    shown(&page)
}

fn examine(arguments: &Doctor, color: ColorChoice) -> Result<ExitCode> {
    let mut lab = Lab::open(Effort::usual(true))?;
    let mut notes = Vec::new();
    let matrix = doctor::examine(&mut lab, &mut notes)?;
    if arguments.json {
        show(&(matrix.to_json() + "\n"));
    } else {
        let terminal = Terminal::new(color);
        show(&table::matrix(&matrix, |text: &str| terminal.red(text)));
        notes.iter().for_each(|note| eprintln!("note: {note}"));
        matrix.findings().iter().for_each(|finding| eprintln!("{finding}"));
    }
    Ok(ExitCode::from(if matrix.findings().is_empty() { 0 } else { INVALID }))
}

fn calibrate(arguments: &Calibrate) -> Result<ExitCode> {
    let mut lab = Lab::open(arguments.effort())?;
    let found = calibrate::run(&mut lab, arguments.stack, arguments.times, &command_line())?;
    deliver(&found.report, &arguments.output)?;
    // The exit code reports only whether equals were distinguished.
    Ok(ExitCode::from(found.report.gate()))
}

fn compare(arguments: &Ab) -> Result<ExitCode> {
    let mut lab = Lab::open(arguments.effort())?;
    let report = ab::run(&mut lab, &arguments.test(), &command_line())?;
    deliver(&report, &arguments.output)
}

fn count(arguments: &Instructions) -> Result<ExitCode> {
    let mut lab = Lab::open(Effort::usual(true))?;
    let counts = instructions::run(&mut lab, &arguments.counting())?;
    Ok(match arguments.json {
        true => show_json(counts.iter().map(|count| json!(count)).collect()),
        false => shown(&instructions::table(&counts)),
    })
}

fn step(arguments: &FootprintArguments) -> Result<ExitCode> {
    let mut lab = Lab::open(Effort::usual(true))?;
    let rows = footprint::run(&mut lab, &arguments.footprint())?;
    Ok(match arguments.json {
        true => show_json(rows.iter().map(|row| json!(row)).collect()),
        false => shown(&footprint::table(&rows)),
    })
}

fn show_again(arguments: &Show) -> Result<ExitCode> {
    let report = Report::read(&arguments.file)?;
    if arguments.md {
        return Ok(shown(&markdown::render(&report)));
    }
    deliver(&report, &arguments.output)
}

/// The command that was typed, quoted as a shell needs it.
fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%".contains(c);
    let quoted = |word: String| match word.chars().all(plain) && !word.is_empty() {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    format!("outboard lab {}", words.join(" "))
}

/// Prints a report, writes its files and returns the exit code.
fn deliver(report: &Report, output: &Output) -> Result<ExitCode> {
    if output.json {
        show(&(report.to_json() + "\n"));
    } else {
        show(&table::render(report));
    }
    if let Some(directory) = &output.out {
        write_report(report, directory)?;
        eprintln!("report: {}", directory.join("report.html").display());
    }
    Ok(if output.gate { ExitCode::from(report.gate()) } else { ExitCode::SUCCESS })
}

fn show_json(values: Value) -> ExitCode {
    shown(&format!("{values:#}\n"))
}

fn shown(text: &str) -> ExitCode {
    show(text);
    ExitCode::SUCCESS
}

fn complete(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "outboard-lab", &mut script);
    shown(&String::from_utf8_lossy(&script))
}

fn write_pages(dir: &std::path::Path) -> ExitCode {
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    match written {
        Ok(()) => shown(&format!("manual pages are in {}\n", dir.display())),
        Err(error) => fail(&format!("{}: {error}", dir.display()), 1),
    }
}

#[cfg(test)]
mod tests;
