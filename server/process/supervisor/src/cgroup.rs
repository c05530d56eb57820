//! Files of the control groups of this process (cgroups(7)).
//!
//! Used by [`crate::memory`] and [`crate::cpu`], for both versions of the interface. Parent groups
//! are listed as well, nearest first: in a container the own group can be mounted as the root, and
//! the limits of every parent apply.

use std::fs;
use std::path::{Path, PathBuf};

const MOUNTED_AT: &str = "/sys/fs/cgroup";

/// A value of a controller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value {
    /// The controller of version 1.
    pub(crate) controller: &'static str,
    /// The file in version 1.
    pub(crate) file_v1: &'static str,
    /// The file in version 2.
    pub(crate) file_v2: &'static str,
}

impl Value {
    /// The contents of its files, from the group of this process upwards; unreadable files are
    /// skipped.
    pub(crate) fn read(&self) -> impl Iterator<Item = String> + use<> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        self.files(&membership).into_iter().filter_map(|file| fs::read_to_string(file).ok())
    }

    /// Its files, from the lines `hierarchy:controllers:path` of `/proc/self/cgroup`. Hierarchy 0
    /// without controllers is version 2.
    fn files(&self, membership: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for line in membership.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(hierarchy), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let (mount, file) = if hierarchy == "0" && controllers.is_empty() {
                (PathBuf::from(MOUNTED_AT), self.file_v2)
            } else if controllers.split(',').any(|controller| controller == self.controller) {
                (Path::new(MOUNTED_AT).join(self.controller), self.file_v1)
            } else {
                continue;
            };
            let groups = Path::new(path).ancestors();
            let below_mount = groups.filter_map(|group| group.strip_prefix("/").ok());
            files.extend(below_mount.map(|group| mount.join(group).join(file)));
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Value =
        Value { controller: "memory", file_v1: "memory.limit_in_bytes", file_v2: "memory.max" };

    fn files(membership: &str) -> Vec<String> {
        MEMORY.files(membership).iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn version_two_is_looked_up_from_the_group_to_the_root() {
        assert_eq!(
            files("0::/system.slice/outboard.service\n"),
            [
                "/sys/fs/cgroup/system.slice/outboard.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }

    #[test]
    fn version_one_is_looked_up_by_its_controller() {
        assert_eq!(
            files("5:cpu,cpuacct:/a\n4:hugetlb,memory:/a:b\n1:name=systemd:/c\n"),
            [
                "/sys/fs/cgroup/memory/a:b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
    }

    #[test]
    fn an_invalid_membership_file_names_no_files() {
        for text in ["", "0", "0::", "x:y", ":::"] {
            assert_eq!(files(text), Vec::<String>::new(), "{text:?}");
        }
    }
}
