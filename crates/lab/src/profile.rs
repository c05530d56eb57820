//! Where the time goes: PHP functions of Outboard's workers, native ones of any process.
//!
//! Used by `outboard profile` on a running server, and by the lab in slices of their own that no
//! statistics ever see. PHP stacks are read from outside by the PHP host's own sampler, so that no
//! extension is needed and a worker notices nothing; native ones by perf, where there is one.
//! [`folded`] holds stacks and how often they were seen, [`flame`] draws them.

pub mod flame;
pub mod folded;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Doing, Error, Result};
use crate::lab::{Lab, program};
use crate::load::Load;
use crate::process_table::{Pid, ProcessTable};
use crate::stack::Stack;
use folded::Folded;

/// The command name of the process whose children are the workers.
pub const ZYGOTE: &str = "outboard-zygote";

/// The word that makes the PHP host the sampler.
const SAMPLER: &str = "sample";

/// Of a slice of the lab.
const SLICE: Sampling = Sampling { duration: Duration::from_secs(2), hz: 199 };

/// What frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Functions of PHP.
    Php,
    /// Functions of the program, its libraries and the kernel.
    Native,
}

impl Kind {
    /// The word for a title.
    pub fn word(self) -> &'static str {
        match self {
            Self::Php => "PHP functions",
            Self::Native => "native functions",
        }
    }
}

/// Where the time of one stack went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Profile {
    /// The name of the [`crate::report::Section`] that it was taken in, once it is in a report.
    pub section: String,
    /// The experiment and its settings.
    pub experiment: String,
    /// The stack.
    pub stack: String,
    /// What the frames are.
    pub kind: Kind,
    /// The stacks.
    pub folded: Folded,
}

/// How long to look, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// For so long.
    pub duration: Duration,
    /// So often a second.
    pub hz: u32,
}

/// The zygotes among these processes.
pub fn zygotes(pids: &[Pid]) -> Vec<Pid> {
    let table = ProcessTable::snapshot();
    let is_zygote = |pid: &Pid| table.get(*pid).is_some_and(|process| process.name == ZYGOTE);
    pids.iter().copied().filter(is_zygote).collect()
}

/// The PHP stacks of the workers of these zygotes, those that wait included.
///
/// The sampler is the program of the zygotes themselves, so that both have the same build of PHP.
pub fn php(zygotes: &[Pid], sampling: Sampling) -> Result<Folded> {
    let Some(first) = zygotes.first() else {
        let what = "there is no PHP of Outboard's among its processes".into();
        return Err(Error::Unexpected { who: "the profile".into(), what });
    };
    let mut sampler = Command::new(format!("/proc/{first}/exe"));
    sampler.args([SAMPLER, &sampling.hz.to_string(), &sampling.duration.as_secs_f64().to_string()]);
    sampler.args(zygotes.iter().map(Pid::to_string));
    Ok(Folded::read(&output(sampler, "the sampler of PHP stacks")?))
}

/// The installed perf.
pub fn perf() -> Result<PathBuf> {
    program(&["/usr/bin/perf", "/usr/local/bin/perf"], "linux-perf")
}

/// The native stacks of these processes, by perf; `scratch` is a folder for its file.
pub fn native(pids: &[Pid], sampling: Sampling, scratch: &Path) -> Result<Folded> {
    let perf = perf()?;
    let file = scratch.join(format!("perf-{}.data", std::process::id()));
    let mut record = Command::new(&perf);
    // The clock and not the processor's counters, which virtual machines often have none of.
    record.args(["record", "--quiet", "--event", "cpu-clock", "--call-graph", "fp"]);
    record.args(["--freq", &sampling.hz.to_string(), "--output"]).arg(&file);
    let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
    record.args(["--pid", &pids.join(",")]);
    record.args(["--", "sleep", &sampling.duration.as_secs_f64().to_string()]);
    output(record, "perf record")?;
    let mut script = Command::new(&perf);
    script.args(["script", "--fields", "comm,ip,sym", "--input"]).arg(&file);
    let text = output(script, "perf script");
    let _ = std::fs::remove_file(&file);
    Ok(Folded::of_perf(&text?))
}

/// Profiles of stacks under load, in slices that nobody counts: of PHP where it is Outboard's, and
/// native ones where there is a perf. What cannot be taken is said, and is no failure.
pub fn of_stacks(
    lab: &Lab,
    stacks: &[&Stack],
    mut load: impl FnMut(&Stack) -> Result<Load>,
) -> Result<Vec<Profile>> {
    let mut profiles = Vec::new();
    for stack in stacks {
        let pids = stack.group.pids();
        let zygotes = zygotes(&pids);
        if !zygotes.is_empty() {
            let folded = during(|| load(stack), || php(&zygotes, SLICE))?;
            profiles.extend(taken(lab, stack, Kind::Php, folded.map(|all| all.computing())));
        }
        let folded = during(|| load(stack), || native(&pids, SLICE, &lab.scratch))?;
        profiles.extend(taken(lab, stack, Kind::Native, folded));
    }
    Ok(profiles)
}

fn taken(lab: &Lab, stack: &Stack, kind: Kind, folded: Result<Folded>) -> Option<Profile> {
    let name = stack.name;
    match folded {
        Ok(folded) => {
            lab.progress(&format!("{name}: {} samples of {}", folded.samples(), kind.word()));
            let (section, experiment) = (String::new(), String::new());
            Some(Profile { section, experiment, stack: name.into(), kind, folded })
        }
        Err(error) => {
            lab.progress(&format!("{name}: no profile of {}: {error}", kind.word()));
            None
        }
    }
}

/// Takes a profile while load goes on; what the load came to is of no interest.
pub(crate) fn during(
    mut load: impl FnMut() -> Result<Load>,
    profile: impl FnOnce() -> Result<Folded> + Send,
) -> Result<Result<Folded>> {
    thread::scope(|scope| {
        let profile = scope.spawn(profile);
        while !profile.is_finished() {
            load()?;
        }
        Ok(profile.join().expect("a profile does not panic"))
    })
}

fn output(mut command: Command, name: &str) -> Result<String> {
    let command = command.stdin(Stdio::null());
    let output = command.output().doing(|| format!("run {name}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Program { program: name.into(), output: format!("{}: {text}", output.status) })
}
