//! Control groups of apps (cgroups(7), version 2): limits for all processes of an app together.
//!
//! Called by the process that starts PHP hosts: the spawner, or the gateway of an unprivileged server.
//! Invariants: groups are created below the group that the server started in, which has to be
//! delegated to it; processes of others are not moved; a host is in its group before it is ordered to start PHP,
//! so everything that it forks is; no controller is enabled while the group has processes itself; a limit that
//! cannot be set is reported, and the app starts without it.

use crate::family;
use outboard_ring::control::ControlGroup;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::id;
use std::sync::OnceLock;

/// Where version 2 is mounted, alone or beside version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The group of the server's own processes: one that has controllers for others has no processes. A server
/// that took over from another one (decision 0031) starts in it.
const OWN: &str = "outboard-server";

/// How often processes are moved that were forked by those that have been moved before.
const ATTEMPTS: u32 = 20;

/// A process that has ended has not to be moved.
const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();

/// The group that the server was started in.
#[derive(Debug)]
struct Delegated(PathBuf);

/// Moves a process to the group of its app, and sets the limits.
///
/// # Errors
/// What was not set, and why.
pub fn place(group: &ControlGroup, pid: u32) -> Result<(), String> {
    static DELEGATED: OnceLock<Result<Delegated, String>> = OnceLock::new();
    DELEGATED.get_or_init(Delegated::find).as_ref().map_err(Clone::clone)?.place(group, pid)
}

/// The same; what was not set is printed to the output of the host, which the gateway logs.
pub fn place_or_print(group: Option<&ControlGroup>, pid: u32, output: &OwnedFd) {
    let Some(Err(why)) = group.map(|group| place(group, pid)) else { return };
    let line = format!("the limits of its control group are not complete: {why}\n");
    // The pipe is empty, and nobody reads it if the gateway has exited.
    let _ = rustix::io::write(output, line.as_bytes());
}

impl Delegated {
    fn find() -> Result<Self, String> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = membership.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or("the machine has no control groups of version 2")?;
        let own = Path::new(own);
        let own = own.parent().filter(|_| own.ends_with(OWN)).unwrap_or(own);
        let below = |mount: &str| Path::new(mount).join(own);
        let found = MOUNTS.into_iter().map(below).find(|path| path.join("cgroup.procs").exists());
        let found = found.ok_or("the control group of the server is not mounted")?;
        Ok(Self(found))
    }

    fn place(&self, group: &ControlGroup, pid: u32) -> Result<(), String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if group.app.is_empty() || !group.app.bytes().all(is_name) {
            return Err("the name of an app has letters, digits, _ and - only".to_owned());
        }
        let limits = [
            ("memory", "memory.max", group.memory_max_bytes.map(|bytes| bytes.to_string())),
            ("cpu", "cpu.weight", group.cpu_weight.map(|weight| weight.to_string())),
            ("pids", "pids.max", group.processes_max.map(|count| count.to_string())),
        ];
        let directory = self.0.join(format!("app-{}", group.app));
        let at = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        match fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(at(&directory, error));
            }
            _ => {}
        }
        let mut failed = Vec::new();
        for (controller, file, value) in limits {
            let Some(value) = value else { continue };
            let file = directory.join(file);
            if let Err(error) = self.enable(controller).and_then(|()| fs::write(&file, value)) {
                failed.push(at(&file, error));
            }
        }
        let processes = directory.join("cgroup.procs");
        fs::write(&processes, pid.to_string()).map_err(|error| at(&processes, error))?;
        if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    }

    /// Enables a controller for the groups of apps.
    ///
    /// `cpu` and `pids` could be enabled beside processes of the group, which then becomes the root of a
    /// threaded one: hosts could not be moved to the groups of their apps any more.
    fn enable(&self, controller: &str) -> io::Result<()> {
        let switches = self.0.join("cgroup.subtree_control");
        let enabled = fs::read_to_string(&switches)?;
        if enabled.split_whitespace().any(|one| one == controller) {
            return Ok(());
        }
        self.leave()?;
        fs::write(&switches, format!("+{controller}"))
    }

    /// Moves the server's own processes out of the group, and fails if others are in it.
    fn leave(&self) -> io::Result<()> {
        let own = self.0.join(OWN);
        match fs::create_dir(&own) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Hosts fork while they are moved.
        for _ in 0..ATTEMPTS {
            let members = self.members()?;
            if members.is_empty() {
                return Ok(());
            }
            let first = family::first(id());
            for pid in members.into_iter().filter(|pid| family::is_descendant(*pid, first)) {
                match fs::write(own.join("cgroup.procs"), pid.to_string()) {
                    Err(error) if error.raw_os_error() != Some(ESRCH) => return Err(error),
                    _ => {}
                }
            }
        }
        if self.members()?.is_empty() {
            return Ok(());
        }
        Err(io::Error::other("the control group of the server has processes of others"))
    }

    fn members(&self) -> io::Result<Vec<u32>> {
        let members = fs::read_to_string(self.0.join("cgroup.procs"))?;
        Ok(members.lines().filter_map(|line| line.parse().ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(app: &str) -> ControlGroup {
        ControlGroup {
            app: app.to_owned(),
            memory_max_bytes: Some(1 << 30),
            cpu_weight: Some(50),
            processes_max: None,
        }
    }

    /// A directory with the files of a group, which are ordinary ones.
    fn delegated(name: &str) -> Delegated {
        let path = std::env::temp_dir().join(format!("outboard-group-{}-{name}", id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("cgroup.subtree_control"), "memory cpu").unwrap();
        Delegated(path)
    }

    #[test]
    fn limits_and_processes_are_written_to_the_group_of_the_app() {
        let delegated = delegated("limits");
        delegated.place(&group("shop"), 4711).unwrap();
        let read =
            |name: &str| fs::read_to_string(delegated.0.join("app-shop").join(name)).unwrap();
        assert_eq!(read("memory.max"), "1073741824");
        assert_eq!(read("cpu.weight"), "50");
        assert_eq!(read("cgroup.procs"), "4711");
        assert!(!delegated.0.join("app-shop/pids.max").exists(), "it is not configured");
        fs::remove_dir_all(&delegated.0).unwrap();
    }

    #[test]
    fn a_name_does_not_leave_the_group() {
        let delegated = delegated("name");
        for name in ["", "..", "a/b", "../shop", "a\n"] {
            assert!(delegated.place(&group(name), 4711).is_err(), "{name:?}");
        }
        fs::remove_dir_all(&delegated.0).unwrap();
    }

    #[test]
    fn a_process_is_placed_although_a_limit_fails() {
        let delegated = delegated("fails");
        // What stands for a controller that the kernel does not have.
        fs::create_dir_all(delegated.0.join("app-shop/memory.max")).unwrap();
        let error = delegated.place(&group("shop"), 4711).unwrap_err();
        let file = delegated.0.join("app-shop/memory.max");
        assert!(error.starts_with(&format!("{}: ", file.display())), "{error}");
        assert!(!error.contains("cpu.weight"), "it was set: {error}");
        let read = |name: &str| fs::read_to_string(delegated.0.join("app-shop").join(name));
        assert_eq!(read("cpu.weight").unwrap(), "50");
        assert_eq!(read("cgroup.procs").unwrap(), "4711");
        fs::remove_dir_all(&delegated.0).unwrap();
    }

    #[test]
    fn a_controller_is_enabled_in_a_group_without_processes() {
        let delegated = delegated("enable");
        let switches = delegated.0.join("cgroup.subtree_control");
        delegated.enable("memory").unwrap();
        assert_eq!(fs::read_to_string(&switches).unwrap(), "memory cpu", "nothing to do");
        fs::write(delegated.0.join("cgroup.procs"), "").unwrap();
        // A name that is part of another one.
        delegated.enable("mem").unwrap();
        assert_eq!(fs::read_to_string(&switches).unwrap(), "+mem");
        fs::remove_dir_all(&delegated.0).unwrap();
    }

    #[test]
    fn processes_of_others_are_not_moved() {
        let delegated = delegated("others");
        fs::write(delegated.0.join("cgroup.procs"), "1\n").unwrap();
        let limit = ControlGroup { processes_max: Some(9), ..group("shop") };
        let error = delegated.place(&limit, 4711).unwrap_err();
        let why = "pids.max: the control group of the server has processes of others";
        assert!(error.ends_with(why), "{error}");
        assert!(!delegated.0.join(OWN).join("cgroup.procs").exists());
        let switches = fs::read_to_string(delegated.0.join("cgroup.subtree_control")).unwrap();
        assert_eq!(switches, "memory cpu", "no controller was enabled");
        fs::remove_dir_all(&delegated.0).unwrap();
    }

    #[test]
    fn the_servers_own_processes_are_moved_out() {
        let delegated = delegated("own");
        fs::write(delegated.0.join("cgroup.procs"), format!("{}\n1\n", id())).unwrap();
        // An ordinary file does not lose a process that is moved.
        assert!(delegated.leave().is_err());
        let moved = fs::read_to_string(delegated.0.join(OWN).join("cgroup.procs")).unwrap();
        assert_eq!(moved, id().to_string());
        fs::remove_dir_all(&delegated.0).unwrap();
    }

    #[test]
    fn what_was_not_set_is_printed_to_the_output_of_the_host() {
        let (output, input) = rustix::pipe::pipe().unwrap();
        place_or_print(None, 4711, &input);
        place_or_print(Some(&group("a/b")), 4711, &input);
        drop(input);
        let text = io::read_to_string(fs::File::from(output)).unwrap();
        assert!(text.starts_with("the limits of its control group are not complete: "), "{text}");
        assert_eq!(text.matches('\n').count(), 1, "one line, of the second: {text}");
    }
}
