//! `outboard-lab`: measures ways of serving PHP. `outboard lab` executes it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    outboard_lab::cli::main()
}
