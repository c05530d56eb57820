//! The machine under the measurement: its description, and how busy others keep it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::php::Php;
use outboard_profile::process_table::Process;

/// The description that readers need to compare numbers with those of another machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model.
    pub processor: String,
    /// Cores that the lab and the stacks share.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// Programs and their versions.
    pub versions: Vec<String>,
}

impl Machine {
    /// Reads it from the kernel and the installed programs.
    pub fn describe(php: &Php, cores: usize, outboard: Option<&Path>) -> Self {
        let fpm = php.fpm();
        let mut versions = vec![
            version(Path::new("/usr/sbin/nginx"), "-v"),
            version(&fpm, "-v"),
            version(Path::new("/usr/sbin/apache2"), "-v"),
            version(Path::new("/usr/sbin/mariadbd"), "--version"),
            version(Path::new("/usr/bin/wrk"), "-v"),
            version(Path::new("/usr/bin/h2load"), "--version"),
        ];
        versions.push(outboard.map_or("outboard: not built".into(), |o| version(o, "--version")));
        Self {
            processor: field("/proc/cpuinfo", "model name"),
            cores,
            memory_mib: field("/proc/meminfo", "MemTotal")
                .trim_end_matches(" kB")
                .parse()
                .unwrap_or(0)
                / 1024,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .into(),
            system: field("/etc/os-release", "PRETTY_NAME").trim_matches('"').into(),
            versions,
        }
    }
}

/// The value after a key of a `key: value` or `key=value` file.
fn field(file: &str, key: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let rest = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    rest.trim_start_matches([' ', '\t', ':', '=']).trim().into()
}

/// The first line that a program prints about its version.
fn version(program: &Path, flag: &str) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(output) = Command::new(program).arg(flag).output() else {
        return format!("{name}: not installed");
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().map_or(format!("{name}: no version"), |line| line.trim().into())
}

/// The machine's CPU clocks and the lab's own.
pub struct Ticks {
    busy_us: u64,
    steal_us: u64,
    total_us: u64,
    lab_us: u64,
    stalled_us: u64,
}

impl Ticks {
    /// Reads `/proc/stat` (proc(5)) and the lab's CPU time with that of its ended children.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let us: Vec<u64> = first
            .split_whitespace()
            .skip(1)
            .map(|word| word.parse::<u64>().unwrap_or(0) * 10_000)
            .chain(std::iter::repeat(0))
            .take(8)
            .collect();
        let lab_us = Process::read(std::process::id()).map_or(0, |process| process.cpu_us);
        // user, nice, system, idle, iowait, irq, softirq, steal
        let busy_us = us[0] + us[1] + us[2] + us[5] + us[6];
        let (total_us, stalled_us) = (us.iter().sum(), stalled_for_memory_us());
        Self { busy_us, steal_us: us[7], total_us, lab_us, stalled_us }
    }

    /// The difference to an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            busy_us: self.busy_us.saturating_sub(earlier.busy_us),
            steal_us: self.steal_us.saturating_sub(earlier.steal_us),
            total_us: self.total_us.saturating_sub(earlier.total_us),
            lab_us: self.lab_us.saturating_sub(earlier.lab_us),
            stalled_us: self.stalled_us.saturating_sub(earlier.stalled_us),
        }
    }

    /// All CPU time of the machine.
    pub fn total_us(&self) -> u64 {
        self.total_us
    }

    /// The share of the machine that its hypervisor gave to others.
    pub fn stolen(&self) -> f64 {
        self.steal_us as f64 / self.total_us.max(1) as f64
    }

    /// The share of the time in which all runnable tasks waited for memory.
    pub fn stalled(&self, cores: usize) -> f64 {
        self.stalled_us as f64 * cores as f64 / self.total_us.max(1) as f64
    }

    /// The share of the machine used by other processes or taken by the hypervisor.
    pub fn taken_by_others(&self, stack_us: u64) -> f64 {
        let others = self.busy_us.saturating_sub(stack_us + self.lab_us) + self.steal_us;
        others as f64 / self.total_us.max(1) as f64
    }
}

/// The time since boot in which all runnable tasks waited for memory, in µs; 0 if the kernel does
/// not report it (Linux's Documentation/accounting/psi.rst).
fn stalled_for_memory_us() -> u64 {
    let pressure = fs::read_to_string("/proc/pressure/memory").unwrap_or_default();
    let full = pressure.lines().find_map(|line| line.strip_prefix("full "));
    let total = full.and_then(|line| line.split("total=").nth(1)?.trim().parse().ok());
    total.unwrap_or(0)
}
