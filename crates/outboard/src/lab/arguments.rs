//! The arguments of `outboard lab`.

use clap::{Args, Subcommand};
use outboard_lab::ab::Duel;
use outboard_lab::catalog::Kind;
use outboard_lab::experiment::Experiment;
use outboard_lab::lab::Effort;
use outboard_lab::metric::Metric;
use outboard_lab::run::Order;
use outboard_lab::side::Side;
use outboard_lab::statistics::looks::Looks;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) work: Work,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Work {
    /// Name the experiments.
    List(Names),
    /// Run experiments: Outboard beside nginx, php-fpm, Apache and others, judged against bars.
    ///
    /// Everything is started from configurations of its own in a temporary folder, measured in
    /// interleaved slices, and ended again.
    Run(Run),
    /// Name the stacks that can serve any folder, and what has to be installed for them.
    Stacks(Names),
    /// Start the stacks and show side by side how they are set up in effect.
    ///
    /// Exit code 0: alike where it matters, 5: not.
    Doctor(Doctor),
    /// Compare a stack with itself: the smallest effect that this machine can show.
    ///
    /// Exit code 0: equals are told apart in at most one of twenty comparisons, 3: in more, 4: the
    /// machine was too noisy to judge all of them.
    Calibrate(Calibrate),
    /// Judge B against A: two stacks, binaries, commands or running servers.
    Ab(Ab),
    /// Show a report.json again, in any form.
    Report(Show),
    /// Ends what a lab has started, when the lab itself has gone.
    #[command(hide = true)]
    Janitor,
    /// Answers every request with the same few bytes, to measure load generators by.
    #[command(hide = true)]
    Null {
        /// Where to listen.
        address: std::net::SocketAddr,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Names {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Slices per stack and experiment [default: 12, with --quick 7].
    #[arg(long, value_name = "N")]
    pub(crate) slices: Option<usize>,
    /// Seconds per slice [default: 3, with --quick 0.5].
    #[arg(long, value_name = "S")]
    pub(crate) seconds: Option<f64>,
    /// Also take profiles of every stack, in slices of their own: flame graphs in the report.
    #[arg(long)]
    pub(crate) profile: bool,
    /// A setting in which stacks may differ; may be given more than once. Without it none is
    /// measured when `lab doctor` finds one.
    #[arg(long, value_name = "SETTING")]
    pub(crate) accept: Vec<String>,
    #[command(flatten)]
    pub(crate) noise: Noise,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// The stack.
    #[arg(long, value_name = "NAME", default_value = "outboard")]
    pub(crate) stack: Kind,
    /// Comparisons.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) times: usize,
    /// Pairs of slices per comparison.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(crate) pairs: usize,
    /// Seconds per slice.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(crate) slice: f64,
    #[command(flatten)]
    pub(crate) noise: Noise,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Ab {
    /// What there is: http://HOST:PORT/PATH, a name of `lab stacks`, an outboard binary, or a
    /// command with {port} in it, and {root} if it likes.
    #[arg(long, value_name = "SIDE")]
    pub(crate) a: Side,
    /// What is judged against it.
    #[arg(long, value_name = "SIDE")]
    pub(crate) b: Side,
    /// The folder that stacks, binaries and commands serve.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
    /// The path asked for, of sides that are no URL.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(crate) path: String,
    /// Connections, each with one request in flight.
    #[arg(long, short, value_name = "N", default_value_t = 20)]
    pub(crate) connections: usize,
    /// Pairs of slices; by default 8, 16, 24 or 32, as soon as they tell.
    #[arg(long, value_name = "N")]
    pub(crate) pairs: Option<usize>,
    /// Seconds per slice.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(crate) slice: f64,
    /// What to compare; may be given more than once.
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) metric: Vec<Metric>,
    /// Differences up to so many per cent count as none [default: 2, of p99 5].
    #[arg(long, value_name = "PERCENT")]
    pub(crate) theta: Option<f64>,
    /// A setting that may differ, since it is what is compared; may be given more than once.
    #[arg(long, value_name = "SETTING")]
    pub(crate) accept: Vec<String>,
    /// Also take profiles of both, in slices of their own: flame graphs of A, B and the difference
    /// in the report.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Answers may have any body: pages with a clock or a token in them.
    #[arg(long)]
    pub(crate) any_body: bool,
    #[command(flatten)]
    pub(crate) noise: Noise,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A report.json.
    pub(crate) file: PathBuf,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub(crate) md: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How much disturbance to bear.
#[derive(Debug, Args)]
pub(crate) struct Noise {
    /// Share of the machine that others may take during a slice.
    #[arg(long = "noise", value_name = "PERCENT", default_value_t = 10.0)]
    pub(crate) percent: f64,
}

impl Noise {
    fn limit(&self) -> f64 {
        self.percent / 100.0
    }
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
    pub(crate) fn order(&self) -> Order {
        let experiments = if self.all { Experiment::all().to_vec() } else { self.names.clone() };
        Order { experiments, accepted: self.accept.clone() }
    }

    pub(crate) fn effort(&self) -> Effort {
        let usual = Effort::usual(self.quick);
        Effort {
            slices: self.slices.unwrap_or(usual.slices),
            slice_seconds: self.seconds.unwrap_or(usual.slice_seconds),
            noise_limit: self.noise.limit(),
            takes_profiles: self.profile,
            ..usual
        }
    }
}

impl Calibrate {
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            slices: self.pairs,
            slice_seconds: self.slice,
            noise_limit: self.noise.limit(),
            ..Effort::usual(false)
        }
    }
}

impl Ab {
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            slice_seconds: self.slice,
            noise_limit: self.noise.limit(),
            takes_profiles: self.profile,
            ..Effort::usual(false)
        }
    }

    pub(crate) fn duel(&self) -> Duel {
        Duel {
            a: self.a.clone(),
            b: self.b.clone(),
            root: std::path::absolute(&self.root).unwrap_or_else(|_| self.root.clone()),
            path: self.path.clone(),
            connections: self.connections,
            metrics: self.metric.clone(),
            theta: self.theta.map(|percent| percent / 100.0),
            looks: self.pairs.map_or_else(Looks::sequential, Looks::once),
            accepted: self.accept.clone(),
            any_body: self.any_body,
        }
    }
}
