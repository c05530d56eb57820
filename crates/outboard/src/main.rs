//! `outboard`: the command line. It reads arguments, calls the crates, and says what came of it.
//!
//! Exit codes: 0 done, 1 it failed, 2 the operator's mistake (arguments, configuration, a taken
//! address). `status` of a named server has those of the Linux Standard Base.

#![forbid(unsafe_code)]

mod admin_client;
mod bench;
mod cache;
mod check;
mod cli;
mod doctor;
mod init;
mod kv;
mod lab;
mod named;
mod notify;
mod opcache;
mod profile;
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
        Command::Start(pick) => named::start::run(&pick, &terminal),
        Command::Restart(pick) => named::stop::restart(&pick, &terminal),
        Command::Shutdown(arguments) => named::stop::shutdown(&arguments, &terminal),
        Command::Init(arguments) => init::run(&arguments, &terminal),
        Command::List(arguments) => named::show::list(&arguments, &terminal),
        Command::Status(arguments) => match arguments.named() {
            Some(pick) => named::show::status(pick, arguments.admin.json, &terminal),
            None => status::run(&arguments.admin, &terminal),
        },
        Command::Reload(arguments) => match arguments.named() {
            Some(pick) => named::stop::reload(pick, &terminal),
            None => reload::run(&arguments.admin, &terminal),
        },
        Command::Stop(arguments) => match arguments.named() {
            Some(pick) => named::stop::run(pick, &terminal),
            None => reload::stop(&arguments.admin, &terminal),
        },
        Command::Cache { action } => cache::run(&action, &terminal),
        Command::Opcache { action } => opcache::run(&action, &terminal),
        Command::Kv { action } => kv::run(&action, &terminal),
        Command::Doctor(arguments) => doctor::run(&arguments, &terminal),
        Command::Bench(arguments) => bench::run(*arguments, &terminal),
        Command::Profile(arguments) => profile::run(&arguments, &terminal),
        Command::Lab(arguments) => lab::run(&arguments, &terminal),
        Command::Spawner => match outboard_spawner::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => terminal.fail(&error.to_string(), 1),
        },
        Command::Schema => check::print_schema(),
    }
}
