//! [`Launch`]: how this server was started, so that its successor is started in the same way.
//!
//! Recorded by the command line before anything else. Invariant: nothing is added to it later.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The option that follows the arguments of the predecessor; standard input is a socket to it.
pub const TAKE_OVER: &str = "--take-over";

/// Of sd_listen_fds(3) and sd_watchdog_enabled(3), for the process that the service manager has started: the
/// sockets are handed over, and the successor's watchdog is the unit's.
const OF_ONE_PROCESS: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// See the module.
#[derive(Debug, Clone)]
pub struct Launch {
    program: PathBuf,
    title: OsString,
    arguments: Vec<OsString>,
    directory: PathBuf,
}

impl Launch {
    /// That of this process. The program is a path: the file may be another one later.
    ///
    /// # Errors
    /// The program, or the working directory, has no path.
    pub fn of_this_process() -> io::Result<Self> {
        let mut arguments = std::env::args_os();
        let title = arguments.next().unwrap_or_default();
        Self::of(title, arguments.collect())
    }

    /// The same with the title and the arguments of a server, in its starter.
    pub(crate) fn of(title: OsString, mut arguments: Vec<OsString>) -> io::Result<Self> {
        arguments.retain(|argument| argument != TAKE_OVER);
        let (program, directory) = (std::env::current_exe()?, std::env::current_dir()?);
        Ok(Self { program, title, arguments, directory })
    }

    /// The program.
    pub(crate) fn program(&self) -> &PathBuf {
        &self.program
    }

    /// Runs `command` in the place of this process.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for name in OF_ONE_PROCESS {
            command.env_remove(name);
        }
        command.current_dir(&self.directory);
        command
    }

    /// Starts a successor.
    pub(crate) fn start(&self, standard: [OwnedFd; 3]) -> io::Result<Child> {
        let [control, output, errors] = standard;
        self.command()
            .arg0(&self.title)
            .args(&self.arguments)
            .arg(TAKE_OVER)
            .stdin(Stdio::from(control))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors))
            .spawn()
    }

    /// The arguments for a starter, which records them as its own.
    pub(crate) fn of_starter(&self) -> impl Iterator<Item = &OsString> {
        std::iter::once(&self.title).chain(&self.arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_has_the_arguments_of_the_first_and_one_more() {
        let arguments = ["serve", "--config", "shop.toml"].map(OsString::from);
        let launch = Launch::of("outboard: shop".into(), arguments.to_vec()).unwrap();
        let again = [&arguments[..], &[OsString::from(TAKE_OVER)]].concat();
        let successor = Launch::of("outboard: shop".into(), again).unwrap();
        assert_eq!(launch.arguments, arguments);
        assert_eq!(successor.arguments, arguments);
        assert!(launch.program().is_absolute() && launch.directory.is_absolute());
        let passed: Vec<&OsString> = launch.of_starter().collect();
        assert_eq!(passed, ["outboard: shop", "serve", "--config", "shop.toml"]);
    }

    #[test]
    fn the_sockets_of_the_service_manager_are_announced_once() {
        let launch = Launch::of("outboard".into(), Vec::new()).unwrap();
        let command = launch.command();
        let removed: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in OF_ONE_PROCESS {
            assert!(removed.iter().any(|removed| *removed == name), "{name}");
        }
    }
}
