//! Where the time goes: PHP functions of Outboard's workers, native functions of any process.
//!
//! Called by `outboard profile` for a running server and by the lab for slices that no statistics
//! use. PHP stacks are read from outside by the sampler of the PHP host, so no extension is needed
//! and a worker notices nothing. Native stacks come from perf, if it is installed. [`folded`] holds
//! stacks with their counts, [`flame`] draws them.

#![forbid(unsafe_code)]

pub mod duration;
pub mod flame;
pub mod folded;
pub mod page;
pub mod process_table;

use crate::process_table::{Pid, ProcessTable};
use folded::Folded;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fmt, io};

/// The command name of the process whose children are the workers.
pub const ZYGOTE: &str = "outboard-zygote";

/// The argument that makes the PHP host the sampler.
const SAMPLER: &str = "sample";

/// How long to sample, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// The whole time.
    pub duration: Duration,
    /// Samples per second.
    pub hz: u32,
}

/// Why there is no profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProfileError {
    /// None of the processes is a zygote of Outboard.
    NoZygote,
    /// perf is not installed.
    NoPerf,
    /// A program could not be started.
    Start {
        /// Its name.
        program: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A program ended unsuccessfully.
    Failed {
        /// Its name.
        program: &'static str,
        /// Exit status and error output.
        output: String,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoZygote => f.write_str("none of these processes runs PHP for Outboard"),
            Self::NoPerf => {
                f.write_str("perf is missing: install it with `apt-get install linux-perf`")
            }
            Self::Start { program, source } => write!(f, "cannot start {program}: {source}"),
            Self::Failed { program, output } => write!(f, "{program} failed: {output}"),
        }
    }
}

impl std::error::Error for ProfileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The zygotes among these processes.
pub fn zygotes(pids: &[Pid]) -> Vec<Pid> {
    let table = ProcessTable::snapshot();
    let is_zygote = |pid: &Pid| table.get(*pid).is_some_and(|process| process.name == ZYGOTE);
    pids.iter().copied().filter(is_zygote).collect()
}

/// The PHP stacks of the workers of these zygotes, including workers that wait.
///
/// The sampler is the executable of the zygotes themselves, so both have the same build of PHP.
///
/// # Errors
/// Without a zygote, or when the sampler fails.
pub fn php(zygotes: &[Pid], sampling: Sampling) -> Result<Folded, ProfileError> {
    let first = zygotes.first().ok_or(ProfileError::NoZygote)?;
    let mut sampler = Command::new(format!("/proc/{first}/exe"));
    sampler.args([SAMPLER, &sampling.hz.to_string(), &sampling.duration.as_secs_f64().to_string()]);
    sampler.args(zygotes.iter().map(Pid::to_string));
    Ok(Folded::read(&run(sampler, "the sampler of PHP stacks")?))
}

/// The native stacks of these processes from perf, which writes its file into `scratch`.
///
/// # Errors
/// When perf is missing or fails.
pub fn native(pids: &[Pid], sampling: Sampling, scratch: &Path) -> Result<Folded, ProfileError> {
    let installed = ["/usr/bin/perf", "/usr/local/bin/perf"].into_iter().map(PathBuf::from);
    let perf = installed.into_iter().find(|path| path.exists()).ok_or(ProfileError::NoPerf)?;
    let file = scratch.join(format!("perf-{}.data", std::process::id()));
    let mut record = Command::new(&perf);
    // Virtual machines often lack the processor's counters, but all of them have the clock.
    record.args(["record", "--quiet", "--event", "cpu-clock", "--call-graph", "fp"]);
    record.args(["--freq", &sampling.hz.to_string(), "--output"]).arg(&file);
    let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
    record.args(["--pid", &pids.join(",")]);
    record.args(["--", "sleep", &sampling.duration.as_secs_f64().to_string()]);
    run(record, "perf record")?;
    let mut script = Command::new(&perf);
    script.args(["script", "--fields", "comm,ip,sym", "--input"]).arg(&file);
    let text = run(script, "perf script");
    let _ = std::fs::remove_file(&file);
    Ok(Folded::of_perf(&text?))
}

fn run(mut command: Command, program: &'static str) -> Result<String, ProfileError> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| ProfileError::Start { program, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ProfileError::Failed { program, output: format!("{}: {text}", output.status) })
}
