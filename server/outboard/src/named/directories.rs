//! The configuration, run and log directories of named servers.
//!
//! Called by every command for named servers. Invariant: two configuration directories never share a
//! run directory, so that servers of the same name in both do not conflict.

use super::Named;
use crate::instances::InstanceDirs;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The system's configuration directory.
const SYSTEM: &str = "/etc/outboard";
/// That of a project.
const PROJECT: &str = "outboard.d";
/// Longest name: with its run directory it must fit into the address of a Unix socket.
const NAME_MAX_BYTES: usize = 48;

/// The directories of one set of named servers.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    /// Absolute.
    pub(crate) conf_dir: PathBuf,
    pub(crate) run_dir: PathBuf,
    log_dir: PathBuf,
}

/// The default configuration directory, if there is one.
pub(crate) fn found() -> Option<PathBuf> {
    [PROJECT, SYSTEM].map(PathBuf::from).into_iter().find(|directory| directory.is_dir())
}

impl Directories {
    /// The directories given by the arguments.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn of(dirs: &InstanceDirs) -> Result<Self, String> {
        let conf_dir = match &dirs.conf_dir {
            Some(directory) => directory.clone(),
            None => found().ok_or_else(|| {
                format!(
                    "there is no configuration directory: neither ./{PROJECT} nor {SYSTEM}; \
                     `outboard init NAME` creates one, or use --conf-dir"
                )
            })?,
        };
        let conf_dir = fs::canonicalize(&conf_dir).map_err(|error| {
            format!("the directory {} cannot be used: {error}", conf_dir.display())
        })?;
        let is_system = conf_dir == Path::new(SYSTEM);
        let run_dir = match &dirs.run_dir {
            Some(directory) => std::path::absolute(directory).map_err(|error| {
                format!("{} is not a usable path: {error}", directory.display())
            })?,
            None if is_system => run_base(),
            None => {
                run_base().join(format!("{:016x}", fnv1a(conf_dir.as_os_str().as_encoded_bytes())))
            }
        };
        let log_dir =
            if is_system { PathBuf::from("/var/log/outboard") } else { conf_dir.join("log") };
        Ok(Self { conf_dir, run_dir, log_dir })
    }

    /// All servers with a configuration file, and those that run without one.
    ///
    /// # Errors
    /// The directory that cannot be read.
    pub(crate) fn servers(&self) -> Result<Vec<Named>, String> {
        let described = names_in(&self.conf_dir, ".toml")
            .map_err(|error| format!("{} cannot be read: {error}", self.conf_dir.display()))?;
        // Without a run directory no server runs.
        let running = names_in(&self.run_dir, ".pid").unwrap_or_default();
        let mut names: Vec<String> = described.into_iter().chain(running).collect();
        names.sort();
        names.dedup();
        Ok(names.into_iter().map(|name| self.named(name)).collect())
    }

    /// One server.
    ///
    /// # Errors
    /// An invalid or unknown name.
    pub(crate) fn server(&self, name: &str) -> Result<Named, String> {
        check_name(name)?;
        let server = self.named(name.to_owned());
        if server.config.exists() || server.pid_file().exists() {
            return Ok(server);
        }
        let known: Vec<_> = self.servers()?.into_iter().map(|server| server.name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let missing = server.config.display();
        Err(format!("there is no server `{name}`: {missing} is missing; existing servers: {known}"))
    }

    pub(crate) fn named(&self, name: String) -> Named {
        Named {
            config: self.conf_dir.join(format!("{name}.toml")),
            run_dir: self.run_dir.clone(),
            log: self.log_dir.join(format!("{name}.log")),
            name,
        }
    }
}

/// Creates a run directory that only this user can write to.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn make_run_dir(directory: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("the run directory {}: {error}", directory.display());
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot)?;
    let found = fs::symlink_metadata(directory).map_err(cannot)?;
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw();
    if !is_ours || found.mode() & 0o022 != 0 {
        return Err(format!(
            "the run directory {} is writable by other users; choose another with --run-dir",
            directory.display()
        ));
    }
    Ok(())
}

/// The names of servers that have a file with this ending.
///
/// # Errors
/// What reading the directory reports.
pub(crate) fn names_in(directory: &Path, ending: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let file_name = entry?.file_name();
        let name = file_name.to_str().and_then(|name| name.strip_suffix(ending));
        names.extend(name.filter(|name| check_name(name).is_ok()).map(str::to_owned));
    }
    Ok(names)
}

/// All run directories of this user.
pub(crate) fn run_dirs() -> Vec<PathBuf> {
    let base = run_base();
    let inner = fs::read_dir(&base).into_iter().flatten().flatten().map(|entry| entry.path());
    let inner: Vec<PathBuf> = inner.filter(|path| path.is_dir()).collect();
    std::iter::once(base).chain(inner).collect()
}

/// # Errors
/// Why it is invalid.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if starts_well && is_plain && name.len() <= NAME_MAX_BYTES {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a valid server name: only letters, digits, - _ and . are allowed, a letter or digit \
         first, at most {NAME_MAX_BYTES} characters"
    ))
}

fn run_base() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/outboard");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory).join("outboard"),
        None => std::env::temp_dir().join(format!("outboard-{}", geteuid().as_raw())),
    }
}

/// Fowler, Noll and Vo's hash, variant 1a with 64 bits: the same in every release.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_its_directory() {
        for name in ["", ".", "..", "../x", "a/b", "-x", ".hidden", "a b", "ä", &"x".repeat(49)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["shop", "shop-2", "a.example.org", "0", "A_b"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn the_hash_is_that_of_its_authors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
