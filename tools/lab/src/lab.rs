//! The state of a run: scratch directory, janitor, limits and effort.
//!
//! Created once by a command, passed to every stack and experiment. Invariant: the scratch
//! directory and all processes started here are registered with the janitor.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::callgrind::Callgrind;
use crate::error::{Result, ResultExt};
use crate::janitor::Janitor;
use crate::php::Php;

/// Descriptors for the lab and for every stack: 10,000 idle connections with a margin.
const DESCRIPTORS: u64 = 65_536;

/// The default share of the machine that others may use during a slice.
const NOISE_LIMIT: f64 = 0.10;

/// How long and how often to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Slices per stack and comparison.
    pub slices: usize,
    /// Length of one slice in seconds.
    pub slice_seconds: f64,
    /// The share of the machine that others may use during a slice.
    pub noise_limit: f64,
    /// Whether profiles are taken as well, in slices of their own.
    pub takes_profiles: bool,
    /// Requests of experiments over many of them, instead of their own number.
    pub requests: Option<u64>,
    /// Divides fixed amounts of work (requests, kills, reloads); 1 for a full run.
    pub shortening: u64,
}

impl Effort {
    /// The default: twelve slices of 3 s, or seven of 0.5 s for a quick look.
    ///
    /// Seven pairs are the fewest that can distinguish a stack from each of three others.
    pub fn usual(quick: bool) -> Self {
        if quick {
            Self { slices: 7, slice_seconds: 0.5, shortening: 5, ..Self::usual(false) }
        } else {
            Self {
                slices: 12,
                slice_seconds: 3.0,
                noise_limit: NOISE_LIMIT,
                takes_profiles: false,
                requests: None,
                shortening: 1,
            }
        }
    }

    /// Whether this is a quick look.
    pub fn is_quick(&self) -> bool {
        self.shortening > 1
    }

    /// The length of slices that are numerous and decide no target.
    pub fn short_slice_seconds(&self) -> f64 {
        self.slice_seconds.min(if self.is_quick() { 0.3 } else { 1.0 })
    }
}

/// The state of a run.
pub struct Lab {
    /// Started by the first experiment that needs them, for all; ended before the janitor cleans up.
    shared: Vec<Arc<dyn Any + Send + Sync>>,
    /// Cleans up, whatever happens to the lab.
    pub janitor: Janitor,
    /// The directory of all configurations, logs, sockets and sites of this run.
    pub scratch: PathBuf,
    /// The PHP version that all stacks use.
    pub php: Php,
    /// How long and how often to measure.
    pub effort: Effort,
    /// Processor cores of this machine.
    pub cores: usize,
    /// The file of the extension that programs were written for, if the user has named one.
    pub program_extension: Option<PathBuf>,
    /// An nginx with HTTP/3, if the user has named one.
    pub nginx_http3: Option<PathBuf>,
    /// Counts the instructions of programs that are started, if it is wanted.
    pub callgrind: Option<Callgrind>,
    /// Distinguishes the directories and groups of two stacks of one kind; empty for one.
    pub variant: &'static str,
}

impl Lab {
    /// Creates the scratch directory, starts the janitor and raises the descriptor limit.
    pub fn open(effort: Effort) -> Result<Self> {
        raise_descriptor_limit()?;
        let mut janitor = Janitor::start()?;
        let scratch = std::env::temp_dir().join(scratch_name());
        std::fs::create_dir(&scratch).context(|| format!("make {}", scratch.display()))?;
        janitor.register_directory(&scratch)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (shared, php) = (Vec::new(), Php::find()?);
        Ok(Self {
            shared,
            janitor,
            scratch,
            php,
            effort,
            cores,
            program_extension: None,
            nginx_http3: None,
            callgrind: None,
            variant: "",
        })
    }

    /// What all experiments share, such as a database: it is started on first use.
    pub(crate) fn shared<T: Any + Send + Sync>(
        &mut self,
        start: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut started = self.shared.iter().filter_map(|one| Arc::clone(one).downcast().ok());
        if let Some(started) = started.next() {
            return Ok(started);
        }
        drop(started);
        let started = Arc::new(start(self)?);
        self.shared.push(started.clone());
        Ok(started)
    }

    /// PHP processes per stack: two per core, the same for all.
    pub fn php_processes(&self) -> usize {
        2 * self.cores
    }

    /// A directory in the scratch directory, with a name that needs no quoting in configurations.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "+-_.".contains(c) { c } else { '-' };
        let name = format!("{name}{}", self.variant);
        let directory = self.scratch.join(name.chars().map(plain).collect::<String>());
        std::fs::create_dir_all(&directory).context(|| format!("make {}", directory.display()))?;
        Ok(directory)
    }

    /// Prints a line about the progress.
    pub fn progress(&self, line: &str) {
        eprintln!("  {line}");
    }
}

fn scratch_name() -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    format!("outboard-lab-{}-{nanos:x}", std::process::id())
}

/// Raises the soft limit up to the hard one, and the hard one if permitted.
fn raise_descriptor_limit() -> Result<()> {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|limit| limit >= DESCRIPTORS) {
        return Ok(());
    }
    let limit = Some(DESCRIPTORS);
    let hard = now.maximum.map(|limit| limit.max(DESCRIPTORS));
    if setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: hard }).is_ok() {
        return Ok(());
    }
    let current = now.maximum.map(|limit| limit.min(DESCRIPTORS));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: now.maximum })
        .context(|| format!("raise the limit of open files to {DESCRIPTORS}"))
}
