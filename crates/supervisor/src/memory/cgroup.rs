//! The memory limit of the control group that this process is in (cgroups(7)).
//!
//! Called by [`super::machine_bytes`]. Both versions of the interface are known; a limit of any
//! group above counts as well, as long as it can be seen from here.

use std::fs;
use std::path::{Path, PathBuf};

const MOUNTED_AT: &str = "/sys/fs/cgroup";

/// The lowest limit that applies; `None` without any.
pub(super) fn limit_bytes() -> Option<u64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let files = limit_files(&membership);
    files.iter().filter_map(|file| parse_limit(&fs::read_to_string(file).ok()?)).min()
}

/// Where limits could be written, from the lines `hierarchy:controllers:path` of
/// `/proc/self/cgroup`. Hierarchy 0 without controllers is version 2.
fn limit_files(membership: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(hierarchy), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (mount, file) = if hierarchy == "0" && controllers.is_empty() {
            (MOUNTED_AT.to_owned(), "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            (format!("{MOUNTED_AT}/memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        let groups = Path::new(path).ancestors().filter_map(|group| group.strip_prefix("/").ok());
        files.extend(groups.map(|group| Path::new(&mount).join(group).join(file)));
    }
    files
}

/// Version 2 says `max` where there is no limit; version 1 says a number beyond any machine, which
/// the machine's own memory undercuts.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(membership: &str) -> Vec<String> {
        limit_files(membership).iter().map(|file| file.display().to_string()).collect()
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
    fn what_is_no_membership_file_names_nothing() {
        for text in ["", "0", "0::", "x:y", ":::"] {
            assert_eq!(files(text), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn no_limit_is_none() {
        assert_eq!(parse_limit("max\n"), None);
        assert_eq!(parse_limit("536870912\n"), Some(512 << 20));
    }
}
