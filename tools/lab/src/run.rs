//! A run: experiments in sequence, and their report.
//!
//! Called by `outboard lab run`. Invariants: stacks with different settings are not measured; an
//! experiment that fails says so in the report and does not stop the others.

use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::doctor;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::lab::{Effort, Lab};
use crate::machine::Machine;
use crate::outboard;
use crate::report::{Report, Run, State};
use crate::verdict::Verdict;

/// The experiments to run.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// In this order.
    pub experiments: Vec<Experiment>,
    /// Settings in which stacks may differ.
    pub accepted: Vec<String>,
    /// The extension that serves programs next to `outboard run`.
    pub program_extension: Option<PathBuf>,
    /// An nginx that is compared by HTTP/3.
    pub nginx_http3: Option<PathBuf>,
}

/// Runs experiments, unless the settings of the stacks differ; `command` repeats the run.
pub fn run(order: &RunPlan, effort: Effort, command: &str) -> Result<Report> {
    let mut lab = Lab::open(effort)?;
    lab.program_extension.clone_from(&order.program_extension);
    lab.nginx_http3.clone_from(&order.nginx_http3);
    let mut report = empty(&lab, command);
    let began = Instant::now();
    let refusal = look_around(&mut lab, &mut report, &order.accepted);
    for &experiment in &order.experiments {
        eprintln!("{}", experiment.name());
        report.begin(&experiment.name(), &experiment.about());
        let began = Instant::now();
        let failure = match &refusal {
            Some(why) => Some(why.clone()),
            None => experiment.run(&mut lab, &mut report).err().map(|error| error.to_string()),
        };
        if let Some(why) = failure {
            eprintln!("  {why}");
            let target = format!("{} experiment", experiment.name());
            report.verdicts.push(Verdict::not_measured(&target, "it failed: see the note"));
            report.notes.push(format!("{}: {why}", experiment.name()));
            report.conclude(State::Failed { why });
        }
        report.took(began.elapsed().as_secs_f64());
    }
    report.run.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

/// Why the stacks must not be compared, if their settings differ. A failing doctor does not stop a
/// run.
fn look_around(lab: &mut Lab, report: &mut Report, accepted: &[String]) -> Option<String> {
    match doctor::examine(lab, &mut report.notes) {
        Ok(mut matrix) => {
            matrix.accept(accepted);
            let refusal = matrix.refusal();
            report.fairness = Some(matrix);
            refusal
        }
        Err(error) => {
            report.notes.push(format!("doctor: {error}"));
            None
        }
    }
}

/// An empty report about this machine.
pub fn empty(lab: &Lab, command: &str) -> Report {
    let machine = Machine::describe(&lab.php, lab.cores, outboard::binary().as_deref());
    let run = Run {
        command: command.into(),
        began: utc(SystemTime::now()),
        seconds: 0.0,
        quick: lab.effort.is_quick(),
    };
    Report::new(run, machine)
}

/// `2026-11-21 12:30 UTC`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, minutes) = (seconds / 86_400, seconds / 60 % 1_440);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Year, month and day of a number of days since 1970 (Gregorian calendar).
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_calendar_knows_leap_years() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(at(1_767_225_599), "2025-12-31 23:59 UTC");
    }
}
