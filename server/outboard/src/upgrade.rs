//! The command line's part of an upgrade: how a server is started again, and what a new one takes over.
//!
//! Called by `outboard serve`, of a configuration and of a named server, before it does anything else.

use crate::notify;
use crate::terminal::Terminal;
use outboard_upgrade::{Estate, Launch, Predecessor, Starter};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// What a server begins with.
pub(crate) struct Inheritance {
    pub(crate) starter: Option<Starter>,
    pub(crate) predecessor: Option<Arc<Predecessor>>,
    /// The sockets of the service manager, or of the predecessor, and the files of the latter.
    pub(crate) estate: Estate,
}

/// Takes what this process was given: with `take_over` the sockets of the server at the other end of standard input.
///
/// # Errors
/// A sentence about what cannot be used.
pub(crate) fn inherit(take_over: bool, launch: Launch) -> Result<Inheritance, String> {
    let (predecessor, estate) = match take_over {
        true => {
            let (predecessor, estate) =
                Predecessor::of_stdin().map_err(|error| format!("no upgrade: {error}"))?;
            (Some(Arc::new(predecessor)), estate)
        }
        false => (None, Estate { sockets: notify::handed_over()?, ..Estate::default() }),
    };
    // Without it the server serves, and cannot be upgraded.
    let starter = Starter::new(launch).ok();
    Ok(Inheritance { starter, predecessor, estate })
}

/// How this process was started.
///
/// # Errors
/// A sentence.
pub(crate) fn launch() -> Result<Launch, String> {
    Launch::of_this_process().map_err(|error| format!("the program has no path: {error}"))
}

/// `outboard starter`: the first argument is the title of the server.
pub(crate) fn run_starter(arguments: Vec<OsString>, terminal: &Terminal) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let title = arguments.next().unwrap_or_default();
    match outboard_upgrade::run(title, arguments.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => terminal.fail(&error.to_string(), 1),
    }
}
