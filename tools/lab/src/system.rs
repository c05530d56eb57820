//! What the lab uses of the system: installed programs, free ports, files.
//!
//! Called by everything that starts a server.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result, ResultExt};

/// Whether the lab runs as root, so that its servers can drop privileges.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A loopback address with a port that was free just now.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener.and_then(|listener| listener.local_addr()).context(|| "find a free port".into())
}

/// Writes a file; the error names it.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, text).context(|| format!("write {}", path.display()))
}

/// The path of an installed program, or the package to install.
pub fn program(candidates: &[&str], package: &'static str) -> Result<PathBuf> {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.exists());
    found.ok_or_else(|| Error::MissingProgram { program: candidates.join(" or "), package })
}

/// The program as the last arguments of a launcher, in the program's directory and environment;
/// an empty launcher is none.
pub fn started_by(launcher: &[&OsStr], program: &Command) -> Command {
    let mut words =
        launcher.iter().copied().chain([program.get_program()]).chain(program.get_args());
    let mut command = Command::new(words.next().expect("the program is one"));
    command.args(words);
    if let Some(directory) = program.get_current_dir() {
        command.current_dir(directory);
    }
    for (key, value) in program.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command
}
