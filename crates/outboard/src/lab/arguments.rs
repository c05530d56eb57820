//! The arguments of `outboard lab`.

use clap::{Args, Subcommand};
use outboard_lab::experiment::Experiment;
use outboard_lab::lab::Effort;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) work: Work,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Work {
    /// Name the experiments.
    List,
    /// Run experiments: Outboard beside nginx, php-fpm, Apache and others, judged against bars.
    ///
    /// Everything is started from configurations of its own in a temporary folder, measured in
    /// interleaved slices, and ended again.
    Run(Run),
    /// Ends what a lab has started, when the lab itself has gone.
    #[command(hide = true)]
    Janitor,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The experiments.
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub(crate) names: Vec<Experiment>,
    /// All of them.
    #[arg(long)]
    pub(crate) all: bool,
    /// Fewer and shorter slices: a look, not a proof.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Slices per stack and experiment [default: 12, with --quick 6].
    #[arg(long, value_name = "N")]
    pub(crate) slices: Option<usize>,
    /// Seconds per slice [default: 3, with --quick 1].
    #[arg(long, value_name = "S")]
    pub(crate) seconds: Option<f64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What becomes of a report.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write report.html, report.md and report.json into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Exit with 0 for the same or better, 3 for worse, 4 for undecided, 5 for invalid.
    #[arg(long)]
    pub(crate) gate: bool,
}

impl Run {
    /// What to run, in the order of the list.
    pub(crate) fn experiments(&self) -> Vec<Experiment> {
        if self.all { Experiment::all().to_vec() } else { self.names.clone() }
    }

    pub(crate) fn effort(&self) -> Effort {
        let usual = Effort::usual(self.quick);
        Effort {
            slices: self.slices.unwrap_or(usual.slices),
            slice_seconds: self.seconds.unwrap_or(usual.slice_seconds),
            ..usual
        }
    }

    /// The command line that does the same again.
    pub(crate) fn command(&self) -> String {
        let mut words = vec!["outboard lab run".to_owned()];
        if self.all {
            words.push("--all".into());
        }
        words.extend(self.names.iter().map(|experiment| experiment.name()));
        if self.quick {
            words.push("--quick".into());
        }
        words.extend(self.slices.map(|slices| format!("--slices {slices}")));
        words.extend(self.seconds.map(|seconds| format!("--seconds {seconds}")));
        words.join(" ")
    }
}
