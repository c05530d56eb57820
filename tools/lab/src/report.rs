//! The result of a run: the machine, a row per experiment and stack, comparisons, targets, notes.
//!
//! Experiments add to it; [`crate::table`], [`crate::markdown`] and [`crate::page`] render it; it
//! is stored as JSON. Invariant: every number shown is in here, so a report can be rendered long
//! after its run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, compare, usual_question};
use crate::error::{Error, Result, ResultExt};
use crate::fairness::Matrix;
use crate::machine::Machine;
use crate::metric::Metric;
use crate::profile::Profile;
use crate::row::Row;
use crate::slice::Rounds;
use crate::statistics::judge::Class;
use crate::verdict::{Outcome, Verdict};

/// The version of the JSON format.
pub const SCHEMA: &str = "outboard.lab.v1";

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Command, time and duration.
    pub run: Run,
    /// The machine.
    pub machine: Machine,
    /// The experiments.
    pub sections: Vec<Section>,
    /// The measurements by stack.
    pub rows: Vec<Row>,
    /// The first stack of each table against the others.
    pub comparisons: Vec<Comparison>,
    /// The targets.
    pub verdicts: Vec<Verdict>,
    /// Profiles, if requested.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// Whether the stacks are set up alike.
    pub fairness: Option<Matrix>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A command line and its time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Run {
    /// The command that repeats it.
    pub command: String,
    /// When it started, in UTC.
    pub began: String,
    /// How long it took.
    pub seconds: f64,
    /// Whether it was a quick look.
    pub quick: bool,
}

/// One experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub about: String,
    /// Its outcome.
    pub state: State,
    /// Its duration, including starting and ending its stacks.
    #[serde(default)]
    pub seconds: f64,
}

/// The outcome of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It was measured.
    Measured,
    /// Its subject is missing, so only peers could be measured.
    SubjectMissing {
        /// The missing subject.
        what: String,
    },
    /// It failed.
    Failed {
        /// The reason.
        why: String,
    },
}

impl Report {
    /// An empty report of a run.
    pub fn new(run: Run, machine: Machine) -> Self {
        Self { schema: SCHEMA.into(), run, machine, ..Self::default() }
    }

    /// Starts a section with this name.
    pub fn begin(&mut self, name: &str, about: &str) {
        let (name, about) = (name.to_owned(), about.to_owned());
        let state = State::Measured;
        self.sections.push(Section { name, about, state, seconds: 0.0 });
    }

    /// Sets the outcome of the current section.
    pub fn conclude(&mut self, state: State) {
        if let Some(section) = self.sections.last_mut() {
            section.state = state;
        }
    }

    /// Sets the duration of the current section.
    pub fn took(&mut self, seconds: f64) {
        if let Some(section) = self.sections.last_mut() {
            section.seconds = seconds;
        }
    }

    /// The durations of the sections, the longest first; `None` for a single section.
    pub fn time_spent(&self) -> Option<String> {
        let mut sections: Vec<&Section> = self.sections.iter().collect();
        sections.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let words = sections.iter().map(|one| format!("{} {:.0}", one.name, one.seconds));
        let before = self.run.seconds - sections.iter().map(|one| one.seconds).sum::<f64>();
        let words: Vec<String> = words.chain([format!("the doctor {before:.0}")]).collect();
        (sections.len() > 1).then(|| format!("Seconds of each: {}.", words.join(", ")))
    }

    /// Adds a row per stack, the comparisons, and a note about repeated rounds.
    pub fn add_rounds(&mut self, experiment: &str, rounds: &Rounds) {
        self.add_rows(experiment, rounds);
        // The few pairs of a quick run suffice for one metric.
        let metrics = if self.run.quick { &Metric::ALL[..1] } else { &Metric::ALL };
        self.comparisons.extend(compare(experiment, rounds, metrics, usual_question));
    }

    /// The same without comparisons.
    pub fn add_rows(&mut self, experiment: &str, rounds: &Rounds) {
        let section = self.sections.last().map_or_else(String::new, |section| section.name.clone());
        for series in &rounds.series {
            self.rows.push(Row::of(&section, experiment, series));
        }
        let named = |profile: &Profile| Profile {
            section: section.clone(),
            experiment: experiment.into(),
            ..profile.clone()
        };
        self.profiles.extend(rounds.profiles.iter().map(named));
        if rounds.repeated > 0 {
            self.notes.push(format!("{experiment}: {} rounds repeated", rounds.repeated));
        }
    }

    /// Adds the instructions per request of a stack to its row.
    pub fn add_instructions(&mut self, experiment: &str, stack: &str, instructions: f64) {
        let mut rows = self.rows.iter_mut();
        if let Some(row) = rows.find(|row| row.experiment == experiment && row.stack == stack) {
            row.instructions = Some(instructions);
        }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and strings serialise")
    }

    /// Reads a report from its JSON file.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).context(|| format!("read {}", file.display()))?;
        let unexpected = |what| Error::Unexpected { who: file.display().to_string(), what };
        let report: Self =
            serde_json::from_str(&text).map_err(|error| unexpected(error.to_string()))?;
        if report.schema != SCHEMA {
            return Err(unexpected(format!("is {}, not {SCHEMA}", report.schema)));
        }
        Ok(report)
    }

    /// The number of targets with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.outcome == outcome).count()
    }

    /// Consecutive rows with the same settings.
    pub fn tables(&self) -> Vec<&[Row]> {
        self.rows
            .chunk_by(|a, b| (&a.section, &a.experiment) == (&b.section, &b.experiment))
            .collect()
    }

    /// The exit code for a CI: 0 the same or better, 3 worse, 4 undecided, 5 invalid.
    pub fn gate(&self) -> u8 {
        let class = |wanted: fn(&Class) -> bool| self.comparisons.iter().any(|c| wanted(&c.class));
        let failed = self.sections.iter().any(|s| matches!(s.state, State::Failed { .. }));
        // If there are targets, they decide; comparisons are additional information.
        let targets = !self.verdicts.is_empty();
        let invalid = || class(|class| matches!(class, Class::Invalid { .. }));
        let undecided = || class(|class| matches!(class, Class::Undecided { .. }));
        match () {
            () if failed || (!targets && invalid()) => 5,
            () if self.count(Outcome::Fail) > 0 => 3,
            () if !targets && class(|class| *class == Class::Worse) => 3,
            () if self.count(Outcome::Undecided) + self.count(Outcome::NotMeasured) > 0 => 4,
            () if !targets && undecided() => 4,
            () => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Series;

    fn with_classes(classes: &[Class]) -> Report {
        let comparison = |class: &Class| Comparison {
            experiment: "test".into(),
            subject: "b".into(),
            reference: "a".into(),
            metric: Metric::Cpu,
            ratio: None,
            differences: Vec::new(),
            p: 1.0,
            p_adjusted: 1.0,
            class: class.clone(),
        };
        Report { comparisons: classes.iter().map(comparison).collect(), ..Report::default() }
    }

    #[test]
    fn the_gate_tells_the_worst_of_it() {
        let (undecided, invalid) =
            (Class::Undecided { more_pairs: None }, Class::Invalid { why: "noise".into() });
        let gate = |classes: &[Class]| with_classes(classes).gate();
        assert_eq!(gate(&[Class::Better, Class::Equal]), 0);
        assert_eq!(gate(&[Class::Better, undecided.clone()]), 4);
        assert_eq!(gate(&[Class::Worse, undecided.clone()]), 3);
        assert_eq!(gate(&[Class::Worse, undecided, invalid]), 5);
    }

    #[test]
    fn targets_decide_if_there_are_any() {
        let mut report = with_classes(&[Class::Worse]);
        report.verdicts.push(Verdict::exact("target", true, "1".into()));
        assert_eq!(report.gate(), 0);
        report.verdicts.push(Verdict::not_measured("other", "nothing there"));
        assert_eq!(report.gate(), 4);
        report.verdicts.push(Verdict::exact("third", false, "2".into()));
        assert_eq!(report.gate(), 3);
    }

    #[test]
    fn time_spent_is_listed_longest_first() {
        let mut report = Report::default();
        report.begin("hello", "");
        report.took(12.0);
        assert_eq!(report.time_spent(), None);
        report.begin("workers", "");
        report.took(60.0);
        report.run.seconds = 75.0;
        let spent = "Seconds of each: workers 60, hello 12, the doctor 3.";
        assert_eq!(report.time_spent().as_deref(), Some(spent));
    }

    #[test]
    fn instructions_are_those_of_a_stack_in_an_experiment() {
        let series = |stack: &str| Series { stack: stack.into(), slices: Vec::new() };
        let rounds = Rounds { series: vec![series("a"), series("b")], ..Rounds::default() };
        let mut report = Report::default();
        report.add_rows("files", &rounds);
        report.add_rows("other", &rounds);
        report.add_instructions("files", "b", 5432.1);
        let texts: Vec<String> = report.rows.iter().map(Row::instructions_text).collect();
        assert_eq!(texts, ["–", "5432", "–", "–"]);
    }

    #[test]
    fn a_written_report_is_read_again() {
        let mut report = with_classes(&[Class::Undecided { more_pairs: Some(7) }]);
        report.begin("offload", "");
        report.conclude(State::SubjectMissing { what: "all of it".into() });
        let json = serde_json::to_string(&report).expect("numbers and strings serialise");
        let again: Report = serde_json::from_str(&json).expect("it is the same form");
        assert_eq!(serde_json::to_string(&again).expect("as before"), json);
    }
}
