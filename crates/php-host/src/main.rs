//! `outboard-php`: the PHP host. One zygote per app starts the engine once and forks workers,
//! each of which answers requests over shared memory: in classic mode one at a time, each by a
//! script of its own; in worker mode by a script that stays.
//!
//! Started by the supervisor with the control socket as standard input; never by hand. As
//! `outboard-php sample` it looks at workers from outside, for `outboard profile`; as
//! `outboard-php run` it runs a program of Swoole up to its server's start, for `outboard run`.
//!
//! ```text
//!  main ─▶ zygote (control socket, forks, reaps) ─fork─▶ worker (request loop)
//!             │                                             │
//!             └▶ startup: settings, ini, engine             ├▶ exchange ◀▶ link ◀▶ ring
//!                                                           │  ▲ callbacks ◀ sapi/*.c ◀ PHP
//!                                                           └▶ resident ▶ events: requests,
//!                                                              descriptors, timers, fetches
//! ```

mod asks;
mod backtrace;
mod callbacks;
mod capture;
mod descendants;
mod engine;
mod events;
mod exchange;
mod fetches;
mod ini;
mod ini_files;
mod link;
mod offload;
mod poller;
mod process;
mod purge;
mod resident;
mod sampler;
mod startup;
mod swoole;
mod worker;
mod zygote;

use std::process::ExitCode;

/// Before the user and group that the zygote becomes first of all, as the spawner writes it.
const USER_OPTION: &str = "--user";

/// `UID:GID`.
fn user(written: Option<String>) -> Option<(u32, u32)> {
    let written = written?;
    let (uid, gid) = written.split_once(':')?;
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some(sampler::COMMAND) => sampler::run(),
        Some(swoole::COMMAND) => swoole::run(None, arguments),
        Some(USER_OPTION) => match user(arguments.next()) {
            Some(user) => match arguments.next().as_deref() {
                Some(swoole::COMMAND) => swoole::run(Some(user), arguments),
                _ => zygote::run(Some(user)),
            },
            None => Err(std::io::Error::other("which user and group is told by numbers: 33:33")),
        },
        _ => zygote::run(None),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("outboard-php: {error}");
            ExitCode::FAILURE
        }
    }
}
