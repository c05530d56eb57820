//! The lab's surroundings: scratch folder, janitor, limits, and what the run was asked for.
//!
//! Made once by a command, lent to every stack and experiment. Invariant: the scratch folder and
//! all that is started from here are known to the janitor.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Doing, Error, Result};
use crate::janitor::Janitor;
use crate::mariadb::MariaDb;
use crate::php::Php;
use crate::wordpress::WordPress;

/// Descriptors that the lab and every stack may hold: 10,000 idle connections and room.
const DESCRIPTORS: u64 = 65_536;

/// The share of the machine that others may take before a slice is refused.
const NOISE_LIMIT: f64 = 0.10;

/// How long and how often to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Slices per stack and comparison.
    pub slices: usize,
    /// Length of one slice in seconds.
    pub slice_seconds: f64,
    /// The share of the machine that others may take during a slice.
    pub noise_limit: f64,
    /// Whether profiles are taken too, in slices of their own.
    pub takes_profiles: bool,
    /// Divides the fixed amounts of work (requests, kills, reloads); 1 for a full run.
    pub shortening: u64,
}

impl Effort {
    /// The usual: twelve slices of 3 s, or a look: seven of 0.5 s.
    ///
    /// Seven pairs are the fewest that can tell a stack from each of three others.
    pub fn usual(quick: bool) -> Self {
        if quick {
            Self { slices: 7, slice_seconds: 0.5, shortening: 5, ..Self::usual(false) }
        } else {
            Self {
                slices: 12,
                slice_seconds: 3.0,
                noise_limit: NOISE_LIMIT,
                takes_profiles: false,
                shortening: 1,
            }
        }
    }

    /// Whether this is a look and not a proof.
    pub fn is_quick(&self) -> bool {
        self.shortening > 1
    }

    /// The length of slices of which many are taken and no bar hangs on any.
    pub fn short_slice_seconds(&self) -> f64 {
        self.slice_seconds.min(if self.is_quick() { 0.3 } else { 1.0 })
    }
}

/// What every stack and experiment gets to see of the run.
pub struct Lab {
    /// Started by the first experiment that needs it, for all; ended before the janitor looks.
    pub(crate) database: Option<Arc<MariaDb>>,
    /// Installed by the first experiment that needs it, for all.
    pub(crate) wordpress: Option<Arc<WordPress>>,
    /// Ends everything, whatever happens to the lab.
    pub janitor: Janitor,
    /// The folder of all configurations, logs, sockets and sites of this run.
    pub scratch: PathBuf,
    /// The PHP whose peers are measured.
    pub php: Php,
    /// How long and how often to measure.
    pub effort: Effort,
    /// Processor cores of this machine.
    pub cores: usize,
    /// Tells the folders and groups of two stacks of one kind apart; empty where there is one.
    pub side: &'static str,
}

impl Lab {
    /// Makes the scratch folder, starts the janitor and raises the descriptor limit.
    pub fn open(effort: Effort) -> Result<Self> {
        raise_descriptor_limit()?;
        let mut janitor = Janitor::start()?;
        let scratch = std::env::temp_dir().join(scratch_name());
        std::fs::create_dir(&scratch).doing(|| format!("make {}", scratch.display()))?;
        janitor.mind_folder(&scratch)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (database, wordpress) = (None, None);
        let php = Php::find()?;
        Ok(Self { database, wordpress, janitor, scratch, php, effort, cores, side: "" })
    }

    /// PHP processes per stack: two per core, the same for all.
    pub fn php_processes(&self) -> usize {
        2 * self.cores
    }

    /// A folder in the scratch folder, named so that no configuration has to quote it.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "+-_.".contains(c) { c } else { '-' };
        let name = format!("{name}{}", self.side);
        let folder = self.scratch.join(name.chars().map(plain).collect::<String>());
        std::fs::create_dir_all(&folder).doing(|| format!("make {}", folder.display()))?;
        Ok(folder)
    }

    /// A line about what is going on, for a person watching.
    pub fn progress(&self, line: &str) {
        eprintln!("  {line}");
    }
}

/// True when the lab may hand its servers to an unprivileged user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A loopback address with a port that was free just now.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener.and_then(|listener| listener.local_addr()).doing(|| "find a free port".into())
}

/// Writes a file, saying which when it fails.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, text).doing(|| format!("write {}", path.display()))
}

/// The path of an installed program, or the package to install.
pub fn program(candidates: &[&str], package: &'static str) -> Result<PathBuf> {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.exists());
    found.ok_or_else(|| Error::MissingProgram { program: candidates.join(" or "), package })
}

fn scratch_name() -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    format!("outboard-lab-{}-{nanos:x}", std::process::id())
}

/// Raises the soft limit as far as the hard one lets us, and the hard one where we may.
fn raise_descriptor_limit() -> Result<()> {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|limit| limit >= DESCRIPTORS) {
        return Ok(());
    }
    let wish = Some(DESCRIPTORS);
    let hard = now.maximum.map(|limit| limit.max(DESCRIPTORS));
    if setrlimit(Resource::Nofile, Rlimit { current: wish, maximum: hard }).is_ok() {
        return Ok(());
    }
    let current = now.maximum.map(|limit| limit.min(DESCRIPTORS));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: now.maximum })
        .doing(|| format!("raise the limit of open files to {DESCRIPTORS}"))
}
