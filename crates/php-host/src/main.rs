//! `outboard-php`: the PHP host. One zygote per app starts the engine once and forks workers,
//! each of which answers one request at a time over shared memory.
//!
//! Started by the supervisor with the control socket as standard input; never by hand.
//!
//! ```text
//!  main ─▶ zygote (control socket, forks, reaps) ─fork─▶ worker (request loop)
//!             │                                             │
//!             └▶ startup: settings, ini, engine             └▶ exchange ◀▶ ring
//!                                                              ▲ callbacks ◀ sapi/*.c ◀ PHP
//! ```

mod backtrace;
mod callbacks;
mod capture;
mod engine;
mod exchange;
mod ini;
mod ini_files;
mod process;
mod startup;
mod worker;
mod zygote;

use std::process::ExitCode;

fn main() -> ExitCode {
    match zygote::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("outboard-php: {error}");
            ExitCode::FAILURE
        }
    }
}
