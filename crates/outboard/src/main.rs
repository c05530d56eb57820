//! `outboard`: the command line. It reads arguments, calls the crates, and says what came of it.
//!
//! Exit codes: 0 done, 1 it failed, 2 the operator's mistake (arguments, configuration, a taken
//! address).

#![forbid(unsafe_code)]

mod admin_client;
mod bench;
mod cache;
mod check;
mod cli;
mod doctor;
mod kv;
mod lab;
mod reload;
mod serve;
mod status;
mod terminal;

use clap::Parser;
use cli::{Command, Outboard};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outboard = Outboard::parse();
    let terminal = terminal::Terminal::new(outboard.color);
    match outboard.command {
        Command::Serve(arguments) => serve::run(&arguments, &terminal),
        Command::Check(arguments) => check::run(&arguments, &terminal),
        Command::Status(arguments) => status::run(&arguments, &terminal),
        Command::Reload(arguments) => reload::run(&arguments, &terminal),
        Command::Stop(arguments) => reload::stop(&arguments, &terminal),
        Command::Cache { action } => cache::run(&action, &terminal),
        Command::Kv { action } => kv::run(&action, &terminal),
        Command::Doctor(arguments) => doctor::run(&arguments, &terminal),
        Command::Bench(arguments) => bench::run(*arguments, &terminal),
        Command::Lab(arguments) => lab::run(&arguments, &terminal),
        Command::Schema => check::print_schema(),
    }
}
