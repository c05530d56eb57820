//! A control group per stack, if this machine allows one: the exact CPU time of every process that
//! ever ran in it, and the list of those that still run.
//!
//! Optional: without it [`crate::group`] uses the process tree. Invariant: the group is a leaf
//! below the lab's own group and is removed by its owner.

use std::fs;
use std::path::{Path, PathBuf};

use outboard_profile::process_table::{Pid, cgroup_cpu_us};

/// A cgroup v2 directory created by the lab (cgroups(7)).
pub struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// Creates a group of that name; `None` if cgroup v2 is absent or not writable.
    pub fn make(name: &str) -> Option<Self> {
        let directory =
            own_directory()?.join(format!("outboard-lab-{}-{name}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let group = Self { directory };
        // Present in every v2 group, whether or not the cpu controller is enabled.
        if group.cpu_us().is_some() {
            return Some(group);
        }
        remove(&group.directory);
        None
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// User and system time of all its processes, past and present, in µs.
    pub fn cpu_us(&self) -> Option<u64> {
        cgroup_cpu_us(&self.directory)
    }
}

/// The processes in a group's directory.
pub fn members(directory: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Removes an empty group, if it exists.
pub fn remove(directory: &Path) {
    let _ = fs::remove_dir(directory);
}

/// The lab's own group below the v2 mount point.
fn own_directory() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (target, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(target))
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount.join(own))
}
