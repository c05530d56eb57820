//! The sandbox of an app's processes: what PHP, and every program that it starts, can reach.
//!
//! Called by `startup` in the zygote, which has one thread; workers inherit it, so a request costs nothing. Called by
//! the keeper for a program that runs in place of PHP.
//! In two steps, because the paths in PHP's settings are known once PHP has started: first the system calls
//! and other processes, then files. Invariant: no script of the app runs before both, except
//! `opcache.preload`, which runs while PHP starts.

pub(crate) mod denials;
pub(crate) mod monitor;
mod paths;

use outboard_ring::control::Sandbox;
use outboard_sandbox::{Enforced, Files, Filter, Profile};
use std::io;

/// Before PHP starts: system calls, and processes that are not the app's.
///
/// With `rewinds` the kernel may note writes for a rewind.
pub(crate) fn enter(sandbox: &Sandbox, app: &str, rewinds: bool) -> io::Result<()> {
    outboard_sandbox::isolate().map_err(io::Error::other)?;
    let profile = if sandbox.is_strict { Profile::StrictPhp } else { Profile::Php };
    restrict_calls(profile, app, rewinds);
    Ok(())
}

/// The whole sandbox, of a program that runs in place of PHP.
pub(crate) fn enter_program(sandbox: &Sandbox, app: &str) -> io::Result<()> {
    outboard_sandbox::isolate().map_err(io::Error::other)?;
    let profile = if sandbox.is_strict { Profile::StrictProgram } else { Profile::Php };
    restrict_calls(profile, app, false);
    restrict(&paths::of_program(sandbox))
}

fn restrict_calls(profile: Profile, app: &str, rewinds: bool) {
    if let Err(error) = filter(profile, app, rewinds) {
        eprintln!("outboard-php: {error}: system calls are not restricted");
    }
}

/// Without a monitor denied calls fail in the same way, and are not logged.
fn filter(profile: Profile, app: &str, rewinds: bool) -> Result<(), outboard_sandbox::Error> {
    let filter = if rewinds { Filter::with_noted_writes(profile)? } else { Filter::new(profile)? };
    if let Err(error) = monitor::start(&filter, app) {
        eprintln!("outboard-php: denied system calls are not logged: {error}");
        return filter.apply();
    }
    Ok(())
}

/// In a worker that was just forked: it reaches no process but those that it starts. So nothing of the app
/// signals the zygote, the monitor or another worker, nor traces them, whatever the call; on a kernel that
/// knows no scope of signals, the filter of calls guards the zygote.
pub(crate) fn enter_worker(zygote: i32) -> io::Result<()> {
    if outboard_sandbox::isolate().map_err(io::Error::other)? == Enforced::Fully {
        return Ok(());
    }
    if let Err(error) = Filter::guarding(zygote).and_then(|filter| filter.apply()) {
        eprintln!("outboard-php: {error}: PHP can signal its zygote");
    }
    Ok(())
}

/// After PHP has started: files and ports.
pub(crate) fn restrict_files(sandbox: &Sandbox, app: &str) -> io::Result<()> {
    restrict(&paths::of_php(sandbox))?;
    denials::begin(app)
}

fn restrict(files: &Files) -> io::Result<()> {
    let mut refused = Vec::new();
    let enforced = outboard_sandbox::restrict_files(files, &mut refused);
    for refusal in refused {
        eprintln!("sandbox: not accessible: {refusal}");
    }
    let missing = match enforced.map_err(io::Error::other)? {
        Enforced::Fully => return Ok(()),
        Enforced::Partly => "knows a part of the rules for files, signals and connections only",
        Enforced::Not => "has no rules for files, signals and connections: the user decides alone",
    };
    eprintln!("sandbox: the kernel {missing} (Landlock; docs/guide/sandbox.md)");
    Ok(())
}
