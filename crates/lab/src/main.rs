//! `outboard-lab`: measures outboard and its peers on this machine and prints the bars.
//!
//! Wiring only. Exit codes: 0 every bar holds, 1 the run itself failed, 3 a bar does not hold,
//! 4 a bar is undecided or was not measured.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use outboard_lab::error::{Doing, Result};
use outboard_lab::experiment::Experiment;
use outboard_lab::lab::{Effort, Lab};
use outboard_lab::machine::Machine;
use outboard_lab::report::Report;
use outboard_lab::verdict::{Outcome, Verdict};
use outboard_lab::{janitor, outboard, table};

/// Measures outboard beside nginx + php-fpm, Apache + mod_php and nginx: own configurations in
/// a temporary folder, interleaved slices, CPU per request, and a verdict for every bar.
#[derive(Parser)]
#[command(name = "outboard-lab", version)]
struct Options {
    /// Fewer and shorter slices: a look, not a proof.
    #[arg(long)]
    quick: bool,
    /// Only this experiment; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<Experiment>,
    /// Also write the report with every slice to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Slices per stack and experiment [default: 12, with --quick 6].
    #[arg(long, value_name = "N")]
    slices: Option<usize>,
    /// Seconds per slice [default: 3, with --quick 1].
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
}

impl Options {
    fn effort(&self) -> Effort {
        let (slices, slice_seconds, shortening) =
            if self.quick { (6, 1.0, 5) } else { (12, 3.0, 1) };
        Effort {
            slices: self.slices.unwrap_or(slices),
            slice_seconds: self.seconds.unwrap_or(slice_seconds),
            shortening,
        }
    }

    fn experiments(&self) -> Vec<Experiment> {
        if self.only.is_empty() {
            return Experiment::value_variants().to_vec();
        }
        self.only.clone()
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(janitor::COMMAND) {
        janitor::run(std::io::stdin().lock());
        return ExitCode::SUCCESS;
    }
    match run(&Options::parse()) {
        Ok(report) => exit_code(&report.verdicts),
        Err(error) => {
            eprintln!("outboard-lab: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<Report> {
    let mut lab = Lab::open(options.effort())?;
    let machine = Machine::describe(&lab.php, lab.cores, outboard::binary().as_deref());
    let mut report = Report { machine, rows: Vec::new(), verdicts: Vec::new(), notes: Vec::new() };
    for experiment in options.experiments() {
        eprintln!("{}", experiment.name());
        if let Err(error) = experiment.run(&mut lab, &mut report) {
            let bar = format!("{} experiment", experiment.name());
            eprintln!("  {error}");
            report.verdicts.push(Verdict::not_measured(&bar, "it failed: see the note"));
            report.notes.push(format!("{}: {error}", experiment.name()));
        }
    }
    print!("{}", table::render(&report));
    if let Some(file) = &options.json {
        let json = serde_json::to_vec_pretty(&report).expect("numbers and strings serialise");
        std::fs::write(file, json).doing(|| format!("write {}", file.display()))?;
    }
    Ok(report)
}

fn exit_code(verdicts: &[Verdict]) -> ExitCode {
    let any = |outcome| verdicts.iter().any(|verdict| verdict.outcome == outcome);
    match () {
        () if any(Outcome::Fail) => ExitCode::from(3),
        () if any(Outcome::Undecided) || any(Outcome::NotMeasured) => ExitCode::from(4),
        () => ExitCode::SUCCESS,
    }
}
