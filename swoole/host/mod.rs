//! Programs of Swoole outside of a gateway: `outboard-php run`, for `outboard run`.
//!
//! Called by `main`. The program runs as by the command line, with coroutines; when its server is to
//! start, the description of that goes to a descriptor and the process ends. A program without a
//! server runs to its end.
//! Invariant: the process has a ring like any worker, so that the event loop is the same, and nobody
//! at its other end.

mod header_blocks;

use crate::link::Link;
use crate::{engine, process, startup, worker_script};
use outboard_ring::control::{HostSettings, Isolation, Rlimits, WorkerScript, Xdebug};
use std::fs::File;
use std::io::{self, Error};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::process::ExitCode;

/// `outboard-php run DESCRIPTOR [-d NAME=VALUE]... SCRIPT ARGUMENT...`
pub(crate) const COMMAND: &str = "run";

/// The most requests and coroutines that wait at the same time is no concern here.
const CONCURRENCY: u32 = 1000;

/// Runs the program that the arguments name, as this user.
pub(crate) fn run(
    user: Option<(u32, u32)>,
    mut arguments: impl Iterator<Item = String>,
) -> io::Result<ExitCode> {
    let usage = || {
        Error::other("usage: outboard-php run DESCRIPTOR [-d NAME=VALUE]... SCRIPT [ARGUMENT...]")
    };
    let descriptor: i32 = arguments.next().and_then(|fd| fd.parse().ok()).ok_or_else(usage)?;
    let mut script = arguments.next().ok_or_else(usage)?;
    let mut ini = Vec::new();
    while script == "-d" {
        let setting = arguments.next().ok_or_else(usage)?;
        let (name, value) = setting.split_once('=').ok_or_else(usage)?;
        ini.push((name.to_owned(), value.to_owned()));
        script = arguments.next().ok_or_else(usage)?;
    }
    if descriptor < 3 {
        return Err(usage());
    }
    // SAFETY: inherited for this purpose, and used by nothing else in this process.
    let description = unsafe { File::from_raw_fd(descriptor) };
    // SAFETY: a plain system call; programs that the script starts do not inherit it.
    unsafe { libc::fcntl(description.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    let parent = process::parent();
    if let Some((uid, gid)) = user {
        process::become_user(uid, gid)?;
    }
    // Who ends `outboard run` means the program.
    if !process::terminate_with(parent) {
        return Ok(ExitCode::FAILURE);
    }
    process::reset_fault_handlers();
    let arguments: Vec<String> = std::iter::once(script.clone()).chain(arguments).collect();
    let worker = WorkerScript {
        script: std::path::absolute(&script)?,
        concurrency: CONCURRENCY,
        isolation: Isolation::Reset,
        lists_files: false,
        frankenphp: false,
        state_report: None,
        starts_server: true,
        arguments,
        exit_ends_script: false,
        boot_request: None,
    };
    startup::start(&settings(ini), process::parent())
        .map_err(|startup::StartError(message)| Error::other(message))?;
    worker_script::describe(&worker, Link::private()?, description);
    Ok(ExitCode::from(engine::worker_script::exit_status()))
}

/// As the command line has them (`cli_main.c`).
fn settings(defined: Vec<(String, String)>) -> HostSettings {
    let ini = [
        ("display_errors", "1"),
        ("html_errors", "0"),
        ("implicit_flush", "1"),
        ("max_execution_time", "0"),
        ("output_buffering", "0"),
        ("log_errors", "0"),
        ("opcache.enable_cli", "0"),
    ];
    HostSettings {
        app: "run".to_owned(),
        document_root: PathBuf::new(),
        sapi_name: "cli".to_owned(),
        ini_file: None,
        ini_scan_dir: None,
        ini: ini
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain(defined)
            .collect(),
        fixed_ini: Default::default(),
        env: std::env::vars().collect(),
        run_as: None,
        no_new_privileges: false,
        dumpable: false,
        background_programs: false,
        sandbox: None,
        control_group: None,
        rlimits: Rlimits::default(),
        worker: None,
        xdebug: Xdebug::AsConfigured,
    }
}
