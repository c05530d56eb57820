//! What a program asks of its server: `$server->reload()` and `$server->shutdown()`, and the signals that do so.
//!
//! The program writes lines to a named pipe in the private directory; a thread reads them, and calls
//! the admin API as `outboard reload` and `outboard stop` do.

use crate::admin_client::call;
use outboard_admin_api::server::{Reload, Stop};
use rustix::fs::{Mode, OFlags, open};
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::thread;

/// Opens the pipe, before the server gives up root's privileges.
///
/// # Errors
/// `open(2)` fails.
pub(super) fn open_pipe(pipe: &Path) -> io::Result<File> {
    // For writing as well: the program's processes come and go, and none of them is the last.
    Ok(File::from(open(pipe, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?))
}

/// Begins to read commands for the server behind `socket`, which has started.
///
/// # Errors
/// There are no threads or signal handlers to be had.
pub(super) fn listen(commands: File, socket: &Path) -> io::Result<()> {
    let mut signals = Signals::new([SIGUSR1, SIGUSR2])?;
    let for_commands = socket.to_owned();
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        for line in BufReader::new(commands).lines().map_while(Result::ok) {
            obey(line.trim(), &for_commands);
        }
    })?;
    let for_signals = socket.to_owned();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            obey("reload", &for_signals);
        }
    })?;
    Ok(())
}

fn obey(command: &str, socket: &Path) {
    let obeyed = match command {
        "reload" => call(socket, &Reload {}).map(drop),
        "shutdown" => call(socket, &Stop {}).map(drop),
        _ => return,
    };
    if let Err(error) = obeyed {
        eprintln!("{command}: {error}");
    }
}
