//! Named servers: one file each, `NAME.toml`, in a configuration directory.
//!
//! Called by the command line. A server is a process of its own, `outboard serve --name NAME`,
//! whether the service manager started it or `outboard start`; there is no parent process.
//! The commands find a running server by its pid file ([`pid_file`]) and its admin socket.

pub(crate) mod directories;
pub(crate) mod pid_file;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod stop;

use crate::instances::InstanceSelector;
use crate::terminal::Terminal;
use directories::Directories;
use pid_file::Presence;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// A server and its files.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// Absolute.
    pub(crate) config: PathBuf,
    /// Directory of its pid file and admin socket.
    pub(crate) run_dir: PathBuf,
    /// Its log file, for "stdout" in its configuration when it runs in the background.
    pub(crate) log: PathBuf,
}

impl Named {
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.run_dir.join(format!("{}.pid", self.name))
    }

    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.run_dir.join(format!("{}.sock", self.name))
    }

    /// Locked by the command that starts it, so that only one does at a time.
    fn start_lock(&self) -> PathBuf {
        self.run_dir.join(format!("{}.start", self.name))
    }

    pub(crate) fn presence(&self) -> io::Result<Presence> {
        pid_file::look(&self.pid_file())
    }
}

/// The result of a command for one server.
#[derive(Debug)]
pub(crate) struct CommandOutcome {
    /// For the terminal; without a line break at its end.
    text: String,
    /// 0 is success.
    code: u8,
}

impl CommandOutcome {
    fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }

    fn failed(text: impl Into<String>, code: u8) -> Self {
        Self { text: text.into(), code }
    }
}

/// Runs a command for each selected server and prints the results.
fn run_selected(
    pick: &InstanceSelector,
    terminal: &Terminal,
    command: impl Fn(&Named) -> CommandOutcome + Sync,
) -> ExitCode {
    match selected(pick) {
        Ok(servers) => run_each(&servers, terminal, command),
        Err(message) => terminal.fail(&message, 2),
    }
}

/// The selected servers.
///
/// # Errors
/// A sentence for the user.
fn selected(pick: &InstanceSelector) -> Result<Vec<Named>, String> {
    let directories = Directories::of(&pick.dirs)?;
    if pick.names.is_empty() {
        let all = directories.servers()?;
        if all.is_empty() {
            return Err(format!(
                "there is no server in {}; `outboard init NAME` creates one",
                directories.conf_dir.display()
            ));
        }
        return Ok(all);
    }
    pick.names.iter().map(|name| directories.server(name)).collect()
}

/// Maximum number of concurrent commands.
const AT_A_TIME: usize = 4;

/// Runs a command for servers, several at a time, and prints the results.
fn run_each(
    servers: &[Named],
    terminal: &Terminal,
    command: impl Fn(&Named) -> CommandOutcome + Sync,
) -> ExitCode {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(servers.len()) {
            let (next, command, sender) = (&next, &command, sender.clone());
            scope.spawn(move || {
                while let Some(server) = servers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver is gone if the terminal is.
                    let _ = sender.send((server, command(server)));
                }
            });
        }
        drop(sender);
        results.iter().fold(ExitCode::SUCCESS, |code, (server, outcome)| {
            print(&server.name, &outcome, terminal);
            if outcome.code == 0 { code } else { ExitCode::from(outcome.code) }
        })
    })
}

/// A closed pipe (`| head`) is not an error.
fn print(name: &str, outcome: &CommandOutcome, terminal: &Terminal) {
    if outcome.code == 0 {
        let _ = writeln!(std::io::stdout(), "{}: {}", terminal.bold(name), outcome.text);
    } else {
        terminal.fail(&format!("{name}: {}", outcome.text), outcome.code);
    }
}

#[cfg(test)]
mod tests;
