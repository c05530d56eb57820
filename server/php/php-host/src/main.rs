//! `outboard-php`: the PHP host. One zygote per app starts the engine once and forks workers, which
//! handle requests over shared memory: in classic mode one at a time, each with its own script; in
//! worker mode with one script for many requests.
//!
//! Started by the supervisor with the control socket as standard input. `outboard-php sample` reads
//! the stacks of workers for `outboard profile`; `outboard-php run` runs a program up to the start
//! of its server, for `outboard run`.
//!
//! ```text
//!  main ─▶ boot ─▶ zygote (control socket, forks, reaps) ─fork─▶ worker (request loop)
//!            │                                                      │
//!            └▶ startup: settings, ini, engine                      ├▶ exchange ◀▶ link ◀▶ ring
//!                                                                   │  ▲ callbacks ◀ sapi/*.c ◀ PHP
//!                                                                   └▶ worker_script ▶ events:
//!                                                                      requests, waits, timers, fetches
//! ```

mod affinity;
mod backtrace;
mod blocking_ops;
mod boot;
mod boot_files;
mod callbacks;
mod child_exits;
mod descendants;
mod direct;
mod engine;
mod events;
mod exchange;
mod exit;
mod fetches;
mod forking;
mod ini;
mod ini_files;
mod keeper;
mod kept_connections;
mod kept_memory;
mod link;
mod offload;
mod open_span;
mod poller;
mod process;
// `build/parts.rs` finds the rest of this part.
#[cfg(programs)]
#[path = "../../../../swoole/host/mod.rs"]
mod programs;
mod rewind;
mod sampler;
mod sandbox;
mod stalls;
mod startup;
mod streams;
mod worker;
mod worker_fds;
mod worker_memories;
mod worker_script;
mod zygote;

use std::process::ExitCode;

/// The option before the user and group to switch to, as the spawner passes it.
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
        #[cfg(programs)]
        Some(programs::COMMAND) => programs::run(None, arguments),
        Some(USER_OPTION) => match user(arguments.next()) {
            Some(user) => match arguments.next().as_deref() {
                #[cfg(programs)]
                Some(programs::COMMAND) => programs::run(Some(user), arguments),
                _ => boot::run(Some(user)),
            },
            None => Err(std::io::Error::other("expected numeric user and group ids, as in 33:33")),
        },
        _ => boot::run(None),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("outboard-php: {error}");
            ExitCode::FAILURE
        }
    }
}
