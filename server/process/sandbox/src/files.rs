//! Landlock: which files a process may open, which ports it may connect to, and that it reaches no process
//! outside of its own domain (landlock(7)).
//!
//! Called in a process with one thread. Invariants: rules are best effort, as the kernel knows them; a
//! path that does not exist has no rule; device files cannot be created anywhere. A rule holds for the
//! directory that its path names now: files that are replaced need a rule for their directory. A path whose
//! links the process's own user may have made has no rule, unless they stay below their directories: PHP cannot
//! widen what its next process may reach.

use crate::Error;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use outboard_trusted_path::{self as trusted_path, Refusal, Users};
use std::path::PathBuf;

/// The newest kernel interface whose rights are used. A newer one must not add rights by itself.
const KNOWN: ABI = ABI::V6;

/// What remains permitted.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Read.
    pub read: Vec<PathBuf>,
    /// Read and started as programs.
    pub programs: Vec<PathBuf>,
    /// Read, written, created and removed.
    pub write: Vec<PathBuf>,
    /// Devices, with their ioctl(2) requests.
    pub devices: Vec<PathBuf>,
    /// The TCP ports that may be connected to; no port may be bound then. `None`: all, and all.
    pub connect_ports: Option<Vec<u16>>,
}

/// How far the kernel honors a restriction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforced {
    /// All of it.
    Fully,
    /// The part that this kernel knows.
    Partly,
    /// Not at all: no Landlock, or not enabled (`lsm=` of the kernel's command line).
    Not,
}

/// Restricts files and ports of this thread and its future children. Adds to `refused` which paths have no rule
/// though they exist, and why.
///
/// # Errors
/// The kernel knows Landlock and refuses the rules.
pub fn restrict_files(files: &Files, refused: &mut Vec<Refusal>) -> Result<Enforced, Error> {
    apply(files, refused).map_err(Error::Landlock)
}

/// From here on, processes that were not started from this one cannot be traced, signalled, or reached by
/// abstract sockets. One domain is inside of another if it was entered from there.
///
/// # Errors
/// As [`restrict_files`].
pub fn isolate() -> Result<Enforced, Error> {
    let enter = || -> Result<RestrictionStatus, RulesetError> {
        // Any right will do on a kernel that knows no scopes: entering a domain prevents tracing.
        let ruleset = Ruleset::default().handle_access(AccessFs::MakeBlock)?;
        ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket)?.create()?.restrict_self()
    };
    enter().map(enforced).map_err(Error::Landlock)
}

/// From here on, the process creates no devices, signals no process that it has not started itself, and
/// starts no programs unless it `starts_programs`. Files and addresses are not restricted.
///
/// # Errors
/// As [`restrict_files`].
pub fn confine_server(starts_programs: bool) -> Result<Enforced, Error> {
    let enter = || -> Result<RestrictionStatus, RulesetError> {
        let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
        let programs = if starts_programs { BitFlags::EMPTY } else { AccessFs::Execute.into() };
        let ruleset = Ruleset::default().handle_access(devices | programs)?;
        ruleset.scope(Scope::Signal)?.create()?.restrict_self()
    };
    enter().map(enforced).map_err(Error::Landlock)
}

fn apply(files: &Files, refused: &mut Vec<Refusal>) -> Result<Enforced, RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let programs = read | AccessFs::Execute;
    let never = AccessFs::MakeChar | AccessFs::MakeBlock;
    let write = all & !never & !AccessFs::IoctlDev & !AccessFs::Execute;
    let devices: BitFlags<AccessFs> =
        AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::IoctlDev;
    // Without this right, a kernel with rules denies all renaming between directories.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?;
    if files.connect_ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut ruleset = ruleset.create()?;
    for (paths, access) in [
        (&files.read, read),
        (&files.programs, programs),
        (&files.write, write),
        (&files.devices, devices),
    ] {
        ruleset = permit(ruleset, paths, access, refused)?;
    }
    for &port in files.connect_ports.iter().flatten() {
        ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    ruleset.restrict_self().map(enforced)
}

fn permit(
    mut ruleset: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
    refused: &mut Vec<Refusal>,
) -> Result<RulesetCreated, RulesetError> {
    let users = Users::of_this_process();
    for path in paths {
        match trusted_path::open(path, &users) {
            Ok(opened) if opened.is_directory => {
                ruleset = ruleset.add_rule(PathBeneath::new(opened.fd, access))?;
            }
            Ok(opened) => {
                let access = access & AccessFs::from_file(KNOWN);
                ruleset = ruleset.add_rule(PathBeneath::new(opened.fd, access))?;
            }
            Err(Refusal::System(_)) => {}
            Err(refusal) => refused.push(refusal),
        }
    }
    Ok(ruleset)
}

fn enforced(status: RestrictionStatus) -> Enforced {
    match status.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::{TcpListener, TcpStream};

    /// The result of `work` in a thread of its own, which alone is restricted; `None` if the kernel cannot.
    fn restricted<T: Send + 'static>(
        files: Files,
        work: impl FnOnce(Vec<Refusal>) -> T + Send + 'static,
    ) -> Option<T> {
        let thread = std::thread::spawn(move || {
            let mut refused = Vec::new();
            let enforced = restrict_files(&files, &mut refused).unwrap();
            (enforced != Enforced::Not).then(|| work(refused))
        });
        thread.join().unwrap()
    }

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outboard-sandbox-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("file"), name).unwrap();
        path
    }

    #[test]
    fn only_files_with_a_rule_can_be_read_and_written() {
        let [read, write, other] = ["read", "write", "other"].map(directory);
        let missing = read.join("missing");
        let files = Files {
            read: vec![read.clone(), missing],
            write: vec![write.clone()],
            ..Files::default()
        };
        let paths = [read.clone(), write.clone(), other.clone()];
        let results = restricted(files, move |refused| {
            assert!(refused.is_empty(), "a path that does not exist has no rule");
            let may_read = paths.clone().map(|path| fs::read(path.join("file")).is_ok());
            let may_write = paths.map(|path| fs::write(path.join("new"), "x").is_ok());
            (may_read, may_write)
        });
        let is_free = fs::read(other.join("file")).is_ok();
        [read, write, other].iter().for_each(|path| fs::remove_dir_all(path).unwrap());
        assert!(is_free, "other threads are not restricted");
        if let Some(results) = results {
            assert_eq!(results, ([true, true, false], [false, true, false]));
        }
    }

    #[test]
    fn only_listed_ports_can_be_connected_to() {
        let [listed, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = [&listed, &other].map(|socket| socket.local_addr().unwrap().port());
        let files = Files { connect_ports: Some(vec![ports[0]]), ..Files::default() };
        let results = restricted(files, move |_| {
            let connects = ports.map(|port| TcpStream::connect(("127.0.0.1", port)).is_ok());
            (connects, TcpListener::bind("127.0.0.1:0").is_ok())
        });
        // Kernels before 6.7 restrict no ports.
        if let Some(([true, connects], binds)) = results {
            assert_eq!(connects, binds);
        } else {
            assert!(results.is_none(), "{results:?}");
        }
    }
}
