//! The arguments of `outboard-lab`, which `outboard lab` passes on.

use crate::ab::AbTest;
use crate::bench::BenchArguments;
use crate::catalog::Kind;
use crate::experiment::Experiment;
use crate::footprint::Footprint;
use crate::instructions::Counting;
use crate::lab::Effort;
use crate::metric::Metric;
use crate::run::RunPlan;
use crate::statistics::looks::Looks;
use crate::variant::Variant;
use clap::{Args, ColorChoice, Parser, Subcommand};
use std::path::PathBuf;

/// Measure Outboard and other ways of serving PHP side by side on this machine.
#[derive(Debug, Parser)]
#[command(name = "outboard-lab", version)]
pub struct Cli {
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: ColorChoice,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Benchmark a server: send requests and report throughput, latency and errors.
    #[command(name = "bench")]
    Bench(Box<BenchArguments>),
    /// List the experiments.
    List(Names),
    /// Run experiments: Outboard against nginx, php-fpm, Apache and others, judged against targets.
    ///
    /// All servers run with configurations of their own in a temporary directory, are measured in
    /// interleaved slices, and are ended again.
    Run(Run),
    /// List the stacks that can serve any directory, with the packages they need.
    Stacks(Names),
    /// Start the stacks and show their effective settings side by side.
    ///
    /// Exit code 0: alike where it matters, 5: different.
    Doctor(Doctor),
    /// Compare a stack with itself: the smallest effect that this machine can show.
    ///
    /// Exit code 0: a difference in at most one of twenty comparisons, 3: in more, 4: the machine
    /// was too noisy to judge all of them.
    Calibrate(Calibrate),
    /// Judge B against A: two stacks, binaries, commands or running servers.
    Ab(Ab),
    /// Count the instructions of a request in user space, by valgrind: exact on any machine.
    ///
    /// Counted are the programs that are started and their forks: of Outboard the gateway, without the
    /// PHP host. Outboard needs valgrind 3.22 or later; the environment variable VALGRIND names another
    /// one than that in PATH.
    Instructions(Instructions),
    /// Count what a request touches: cache lines of code and data, pages, instructions, system calls.
    ///
    /// Every thread of every process is executed one instruction at a time while a request is served, so
    /// the counts are exact on any machine, and those of a request that comes after a pause. Without a
    /// variant: nginx's own response, and a hello of each of Outboard's modes. Needs x86-64, and root
    /// for processes of other users.
    Footprint(FootprintArguments),
    /// Show a report.json again, in any format.
    Report(Show),
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command.
    Man {
        /// The directory, which is created if it is missing.
        dir: PathBuf,
    },
    /// End what a lab has started, when the lab itself has ended.
    #[command(hide = true)]
    Janitor,
    /// Send the same few bytes for every request, to measure load generators.
    #[command(hide = true)]
    Null {
        /// The address to listen on.
        address: std::net::SocketAddr,
    },
}

#[derive(Debug, Args)]
pub(super) struct Names {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Run {
    /// The experiments.
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub(super) names: Vec<Experiment>,
    /// Run all experiments.
    #[arg(long)]
    pub(super) all: bool,
    /// Fewer and shorter slices, for a quick look.
    #[arg(long)]
    pub(super) quick: bool,
    /// Slices per stack and experiment [default: 12, with --quick 7].
    #[arg(long, value_name = "N")]
    pub(super) slices: Option<usize>,
    /// Seconds per slice [default: 3, with --quick 0.5].
    #[arg(long, value_name = "S")]
    pub(super) seconds: Option<f64>,
    /// Requests of `rewind-endurance` [default: 1000000, with --quick 200000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub(super) requests: Option<u64>,
    /// Also take profiles of every stack, in slices of their own: flame graphs in the report.
    #[arg(long)]
    pub(super) profile: bool,
    /// A setting that may differ between stacks; may be given more than once. Without it, nothing
    /// is measured if `lab doctor` finds a difference.
    #[arg(long, value_name = "SETTING")]
    pub(super) accept: Vec<String>,
    /// The extension that the programs of `resident` were written for [default: the one that PHP loads].
    #[arg(long, value_name = "FILE")]
    pub(super) program_extension: Option<PathBuf>,
    /// An nginx with HTTP/3 to compare with; ci/nginx-http3 builds one.
    #[arg(long, value_name = "FILE")]
    pub(super) nginx_http3: Option<PathBuf>,
    #[command(flatten)]
    pub(super) noise: Noise,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Calibrate {
    /// The stack.
    #[arg(long, value_name = "NAME", default_value = "outboard")]
    pub(super) stack: Kind,
    /// The number of comparisons.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) times: usize,
    /// Pairs of slices per comparison.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(super) pairs: usize,
    /// Seconds per slice.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(super) slice: f64,
    #[command(flatten)]
    pub(super) noise: Noise,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct Ab {
    /// The reference: http://HOST:PORT/PATH, a name of `lab stacks`, an outboard binary, or a
    /// command with {port} and optionally {root} in it.
    #[arg(long, value_name = "VARIANT")]
    pub(super) a: Variant,
    /// The variant that is judged against it.
    #[arg(long, value_name = "VARIANT")]
    pub(super) b: Variant,
    /// The directory that stacks, binaries and commands serve.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) root: PathBuf,
    /// The path requested from variants that are no URL.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(super) path: String,
    /// Connections, each with one request in flight.
    #[arg(long, short, value_name = "N", default_value_t = 20)]
    pub(super) connections: usize,
    /// Pairs of slices [default: 8, 16, 24 or 32, as soon as they suffice].
    #[arg(long, value_name = "N")]
    pub(super) pairs: Option<usize>,
    /// Seconds per slice.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(super) slice: f64,
    /// The metric to compare; may be given more than once.
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(super) metric: Vec<Metric>,
    /// Differences up to this many per cent count as none [default: 2, for p99 5].
    #[arg(long, value_name = "PERCENT")]
    pub(super) theta: Option<f64>,
    /// A setting that may differ, since it is compared; may be given more than once.
    #[arg(long, value_name = "SETTING")]
    pub(super) accept: Vec<String>,
    /// Also take profiles of both, in slices of their own: flame graphs of A, B and the difference
    /// in the report.
    #[arg(long)]
    pub(super) profile: bool,
    /// Allow any body: pages with a clock or a token in them.
    #[arg(long)]
    pub(super) any_body: bool,
    #[command(flatten)]
    pub(super) noise: Noise,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct Instructions {
    /// What to count: a name of `lab stacks`, an outboard binary, or a command with {port} and
    /// optionally {root} in it. The first is the reference.
    #[arg(value_name = "VARIANT", required = true)]
    pub(super) variants: Vec<Variant>,
    /// The directory that stacks, binaries and commands serve.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) root: PathBuf,
    /// The requested path.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(super) path: String,
    /// Connections, each with one request in flight.
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    pub(super) connections: usize,
    /// The number of requests that are counted.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) requests: u64,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct FootprintArguments {
    /// What to trace: http://HOST:PORT/PATH, a name of `lab stacks`, an outboard binary, or a command
    /// with {port} and optionally {root} in it.
    #[arg(value_name = "VARIANT")]
    pub(super) variants: Vec<Variant>,
    /// The directory that stacks, binaries and commands serve.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) root: PathBuf,
    /// The requested path.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(super) path: String,
    /// The number of requests that are counted; the median is shown.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..1000))]
    pub(super) requests: u64,
    /// Also list the N functions that touch most lines first.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) functions: usize,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// A report.json.
    pub(super) file: PathBuf,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub(super) md: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

/// The tolerated disturbance.
#[derive(Debug, Args)]
pub(super) struct Noise {
    /// Share of the machine that others may use during a slice.
    #[arg(long = "noise", value_name = "PERCENT", default_value_t = 10.0)]
    pub(super) percent: f64,
}

impl Noise {
    fn limit(&self) -> f64 {
        self.percent / 100.0
    }
}

/// The output of a report.
#[derive(Debug, Args)]
pub(super) struct Output {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Also write report.html, report.md and report.json into this directory.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Exit with 0 for the same or better, 3 for worse, 4 for undecided, 5 for invalid.
    #[arg(long)]
    pub(super) gate: bool,
}

impl Run {
    /// The experiments to run, in the order of the list.
    pub(super) fn order(&self) -> RunPlan {
        let experiments = if self.all { Experiment::all().to_vec() } else { self.names.clone() };
        let accepted = self.accept.clone();
        let program_extension = self.program_extension.clone();
        let nginx_http3 = self.nginx_http3.clone();
        RunPlan { experiments, accepted, program_extension, nginx_http3 }
    }

    pub(super) fn effort(&self) -> Effort {
        let usual = Effort::usual(self.quick);
        Effort {
            slices: self.slices.unwrap_or(usual.slices),
            slice_seconds: self.seconds.unwrap_or(usual.slice_seconds),
            noise_limit: self.noise.limit(),
            takes_profiles: self.profile,
            requests: self.requests,
            ..usual
        }
    }
}

impl Calibrate {
    pub(super) fn effort(&self) -> Effort {
        Effort {
            slices: self.pairs,
            slice_seconds: self.slice,
            noise_limit: self.noise.limit(),
            ..Effort::usual(false)
        }
    }
}

impl FootprintArguments {
    pub(super) fn footprint(&self) -> Footprint {
        let variants = self.variants.iter();
        Footprint {
            variants: variants.map(|variant| (variant.to_string(), variant.clone())).collect(),
            root: self.root.clone(),
            path: self.path.clone(),
            requests: self.requests as usize,
            places: self.functions,
        }
    }
}

impl Instructions {
    pub(super) fn counting(&self) -> Counting {
        let variants = self.variants.iter();
        Counting {
            variants: variants.map(|variant| (variant.to_string(), variant.clone())).collect(),
            root: self.root.clone(),
            path: self.path.clone(),
            connections: self.connections,
            requests: self.requests,
        }
    }
}

impl Ab {
    pub(super) fn effort(&self) -> Effort {
        Effort {
            slice_seconds: self.slice,
            noise_limit: self.noise.limit(),
            takes_profiles: self.profile,
            ..Effort::usual(false)
        }
    }

    pub(super) fn test(&self) -> AbTest {
        AbTest {
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
