//! The result of a run: the machine, a row per experiment and stack, comparisons, bars, notes.
//!
//! Experiments add to it; [`crate::table`], [`crate::markdown`] and [`crate::page`] show it; as
//! JSON it is written down and read again. Invariant: every number shown comes from here, so a
//! report can be shown in any form long after its run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, compare, usual_question};
use crate::error::{Doing, Error, Result};
use crate::experiment::Experiment;
use crate::fairness::Matrix;
use crate::lab::write;
use crate::load::Failures;
use crate::machine::Machine;
use crate::metric::Metric;
use crate::profile::Profile;
use crate::published::Published;
use crate::refusal::Refusal;
use crate::slice::{Rounds, Series};
use crate::statistics::judge::Class;
use crate::verdict::{Outcome, Verdict};
use crate::{markdown, page};

/// The form that this code writes and reads.
pub const SCHEMA: &str = "outboard.lab.v1";

/// Everything that a run found out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was run, when, and for how long.
    pub run: Run,
    /// Where it was measured.
    pub machine: Machine,
    /// What each experiment came to.
    pub sections: Vec<Section>,
    /// What was measured, stack by stack.
    pub rows: Vec<Row>,
    /// The first stack of every row against the others.
    pub comparisons: Vec<Comparison>,
    /// The bars.
    pub verdicts: Vec<Verdict>,
    /// Where the time went, if that was asked for.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    /// Whether the stacks are set up alike.
    pub fairness: Option<Matrix>,
    /// What a reader should know beside the numbers.
    pub notes: Vec<String>,
}

/// What was run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Run {
    /// The command that does it again.
    pub command: String,
    /// When it began, in UTC.
    pub began: String,
    /// How long it took.
    pub seconds: f64,
    /// A look, not a proof.
    pub quick: bool,
}

/// One experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub about: String,
    /// What became of it.
    pub state: State,
    /// What others once measured, to stand beside today's numbers.
    pub published: Option<Published>,
    /// How long it took, with starting and ending its stacks.
    #[serde(default)]
    pub seconds: f64,
}

/// What became of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It was measured.
    Measured,
    /// What it is about does not exist yet, or only its peers could be measured.
    SubjectMissing {
        /// What is missing.
        what: String,
    },
    /// It failed.
    Failed {
        /// Why.
        why: String,
    },
}

/// One stack in one experiment: medians over its slices.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The name of the [`Section`].
    pub section: String,
    /// The experiment and its settings.
    pub experiment: String,
    /// The stack.
    pub stack: String,
    /// Answers of all slices.
    pub answers: u64,
    /// Failed requests of all slices, by class.
    pub failures: Failures,
    /// Share of requests that came over a connection that had answered before; `None` where the
    /// generator does not tell.
    pub keep_alive: Option<f64>,
    /// Answers per second.
    pub rate: f64,
    /// Median latency in ms.
    pub p50_ms: f64,
    /// 99th percentile of latency in ms.
    pub p99_ms: f64,
    /// Server CPU per answer in µs.
    pub cpu_us: f64,
    /// Proportional memory in MiB.
    pub pss_mib: f64,
    /// Why it must not be ranked.
    pub refusal: Option<Refusal>,
    /// The slices behind the medians.
    pub slices: Series,
}

impl Report {
    /// An empty report of a run.
    pub fn new(run: Run, machine: Machine) -> Self {
        Self { schema: SCHEMA.into(), run, machine, ..Self::default() }
    }

    /// What comes now belongs to this experiment.
    pub fn begin(&mut self, experiment: Experiment) {
        self.begin_named(&experiment.name(), &experiment.about());
        if let Some(section) = self.sections.last_mut() {
            section.published = Published::of(experiment);
        }
    }

    /// What comes now belongs to something of this name.
    pub fn begin_named(&mut self, name: &str, about: &str) {
        let (name, about) = (name.to_owned(), about.to_owned());
        let state = State::Measured;
        self.sections.push(Section { name, about, state, published: None, seconds: 0.0 });
    }

    /// Says what became of the present experiment.
    pub fn conclude(&mut self, state: State) {
        if let Some(section) = self.sections.last_mut() {
            section.state = state;
        }
    }

    /// Says how long the present experiment has taken.
    pub fn took(&mut self, seconds: f64) {
        if let Some(section) = self.sections.last_mut() {
            section.seconds = seconds;
        }
    }

    /// Where the time of the run went, in a sentence, the longest first; `None` where that is plain.
    pub fn time_spent(&self) -> Option<String> {
        let mut sections: Vec<&Section> = self.sections.iter().collect();
        sections.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let words = sections.iter().map(|one| format!("{} {:.0}", one.name, one.seconds));
        let before = self.run.seconds - sections.iter().map(|one| one.seconds).sum::<f64>();
        let words: Vec<String> = words.chain([format!("the doctor {before:.0}")]).collect();
        (sections.len() > 1).then(|| format!("Seconds of each: {}.", words.join(", ")))
    }

    /// Adds a row per stack, the comparisons, and a note when rounds were taken again.
    pub fn add_rounds(&mut self, experiment: &str, rounds: &Rounds) {
        self.add_rows(experiment, rounds);
        // The few pairs of a quick run are enough for one metric.
        let metrics = if self.run.quick { &Metric::ALL[..1] } else { &Metric::ALL };
        self.comparisons.extend(compare(experiment, rounds, metrics, usual_question));
    }

    /// The same without comparing.
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
            self.notes.push(format!("{experiment}: {} rounds taken again", rounds.repeated));
        }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and strings serialise")
    }

    /// Reads a report that was written as JSON.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).doing(|| format!("read {}", file.display()))?;
        let unexpected = |what| Error::Unexpected { who: file.display().to_string(), what };
        let report: Self =
            serde_json::from_str(&text).map_err(|error| unexpected(error.to_string()))?;
        if report.schema != SCHEMA {
            return Err(unexpected(format!("is {}, not {SCHEMA}", report.schema)));
        }
        Ok(report)
    }

    /// Writes the report in every form into a folder.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
        write(&folder.join("report.json"), self.to_json())?;
        write(&folder.join("report.md"), markdown::render(self))?;
        write(&folder.join("report.html"), page::render(self))
    }

    /// How many bars came out like that.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.outcome == outcome).count()
    }

    /// The rows of an experiment with the same settings, in the order measured.
    pub fn tables(&self) -> Vec<&[Row]> {
        self.rows
            .chunk_by(|a, b| (&a.section, &a.experiment) == (&b.section, &b.experiment))
            .collect()
    }

    /// The exit code for a CI: 0 the same or better, 3 worse, 4 undecided, 5 invalid.
    pub fn gate(&self) -> u8 {
        let class = |wanted: fn(&Class) -> bool| self.comparisons.iter().any(|c| wanted(&c.class));
        let failed = self.sections.iter().any(|s| matches!(s.state, State::Failed { .. }));
        // Where there are bars they are what was promised; comparisons are the rest of the story.
        let bars = !self.verdicts.is_empty();
        let invalid = || class(|class| matches!(class, Class::Invalid { .. }));
        let undecided = || class(|class| matches!(class, Class::Undecided { .. }));
        match () {
            () if failed || (!bars && invalid()) => 5,
            () if self.count(Outcome::Fail) > 0 => 3,
            () if !bars && class(|class| *class == Class::Worse) => 3,
            () if self.count(Outcome::Undecided) + self.count(Outcome::NotMeasured) > 0 => 4,
            () if !bars && undecided() => 4,
            () => 0,
        }
    }
}

impl Row {
    fn of(section: &str, experiment: &str, series: &Series) -> Self {
        Self {
            section: section.into(),
            experiment: experiment.into(),
            stack: series.stack.clone(),
            answers: series.answers(),
            failures: series.failures(),
            keep_alive: series.keep_alive(),
            rate: series.median(|slice| slice.load.rate()),
            p50_ms: series.median(|slice| slice.load.latency.p50_us) / 1e3,
            p99_ms: series.median(|slice| slice.load.latency.p99_us) / 1e3,
            cpu_us: series.median(|slice| slice.cpu_us_per_answer()),
            pss_mib: series.median(|slice| slice.pss_bytes as f64) / 1_048_576.0,
            refusal: Refusal::of_series(series),
            slices: series.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn where_there_are_bars_the_bars_decide() {
        let mut report = with_classes(&[Class::Worse]);
        report.verdicts.push(Verdict::exact("bar", true, "1".into()));
        assert_eq!(report.gate(), 0);
        report.verdicts.push(Verdict::not_measured("other", "nothing there"));
        assert_eq!(report.gate(), 4);
        report.verdicts.push(Verdict::exact("third", false, "2".into()));
        assert_eq!(report.gate(), 3);
    }

    #[test]
    fn the_time_of_a_run_is_told_by_experiment_the_longest_first() {
        let mut report = Report::default();
        report.begin(Experiment::Hello);
        report.took(12.0);
        assert_eq!(report.time_spent(), None);
        report.begin(Experiment::Workers);
        report.took(60.0);
        report.run.seconds = 75.0;
        let spent = "Seconds of each: workers 60, hello 12, the doctor 3.";
        assert_eq!(report.time_spent().as_deref(), Some(spent));
    }

    #[test]
    fn what_is_written_down_is_read_again() {
        let mut report = with_classes(&[Class::Undecided { more_pairs: Some(7) }]);
        report.begin(Experiment::Offload);
        report.conclude(State::SubjectMissing { what: "all of it".into() });
        let json = serde_json::to_string(&report).expect("numbers and strings serialise");
        let again: Report = serde_json::from_str(&json).expect("it is the same form");
        assert_eq!(serde_json::to_string(&again).expect("as before"), json);
    }
}
