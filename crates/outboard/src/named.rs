//! Named servers: one file each, `NAME.toml`, in a configuration folder.
//!
//! Called by the command line. A server is a process of its own, `outboard serve --name NAME`,
//! whether the service manager started it or `outboard start`; nothing stands above the servers.
//! What the commands know of a running one they know from its pid file ([`pid_file`]) and its
//! admin socket.

pub(crate) mod pid_file;
pub(crate) mod places;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod stop;

use crate::cli::Pick;
use crate::terminal::Terminal;
use pid_file::Presence;
use places::Folders;
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
    /// Where it is while it runs.
    pub(crate) run_dir: PathBuf,
    /// Where it logs to when its configuration says "stdout" and nobody looks.
    pub(crate) log: PathBuf,
}

impl Named {
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.run_dir.join(format!("{}.pid", self.name))
    }

    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.run_dir.join(format!("{}.sock", self.name))
    }

    /// Held by the command that starts it, so that two do not at a time.
    fn start_lock(&self) -> PathBuf {
        self.run_dir.join(format!("{}.start", self.name))
    }

    pub(crate) fn presence(&self) -> io::Result<Presence> {
        pid_file::look(&self.pid_file())
    }
}

/// What became of an order to one server.
#[derive(Debug)]
pub(crate) struct Told {
    /// For the terminal; without a line break at its end.
    text: String,
    /// 0 is success.
    code: u8,
}

impl Told {
    fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }

    fn failed(text: impl Into<String>, code: u8) -> Self {
        Self { text: text.into(), code }
    }
}

/// Gives an order to each of the picked servers and says what became of it.
fn order_each(pick: &Pick, terminal: &Terminal, order: impl Fn(&Named) -> Told + Sync) -> ExitCode {
    match picked(pick) {
        Ok(servers) => tell_each(&servers, terminal, order),
        Err(message) => terminal.fail(&message, 2),
    }
}

/// The servers that are meant.
///
/// # Errors
/// A sentence for the person who asked.
fn picked(pick: &Pick) -> Result<Vec<Named>, String> {
    let folders = Folders::of(&pick.places)?;
    if pick.names.is_empty() {
        let all = folders.servers()?;
        if all.is_empty() {
            return Err(format!(
                "no server is described in {}; `outboard init NAME` makes a first one",
                folders.conf_dir.display()
            ));
        }
        return Ok(all);
    }
    pick.names.iter().map(|name| folders.server(name)).collect()
}

/// At most this many are started or stopped at a time.
const AT_A_TIME: usize = 4;

/// Gives an order to servers, several at a time, and prints what became of each.
fn tell_each(
    servers: &[Named],
    terminal: &Terminal,
    order: impl Fn(&Named) -> Told + Sync,
) -> ExitCode {
    let next = AtomicUsize::new(0);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(servers.len()) {
            let (next, order, tell) = (&next, &order, tell.clone());
            scope.spawn(move || {
                while let Some(server) = servers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Nobody listens any more when the terminal is gone.
                    let _ = tell.send((server, order(server)));
                }
            });
        }
        drop(tell);
        told.iter().fold(ExitCode::SUCCESS, |code, (server, told)| {
            print(&server.name, &told, terminal);
            if told.code == 0 { code } else { ExitCode::from(told.code) }
        })
    })
}

/// A reader that has seen enough (`| head`) is no mistake.
fn print(name: &str, told: &Told, terminal: &Terminal) {
    if told.code == 0 {
        let _ = writeln!(std::io::stdout(), "{}: {}", terminal.bold(name), told.text);
    } else {
        terminal.fail(&format!("{name}: {}", told.text), told.code);
    }
}
