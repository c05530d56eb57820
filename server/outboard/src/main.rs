//! `outboard`: the command line. It parses arguments, calls the crates, and prints the result.
//!
//! Exit codes: 0 success, 1 failure, 2 user error (arguments, configuration, an address in
//! use). `status` of a named server has those of the Linux Standard Base.

#![forbid(unsafe_code)]
// `println!` panics when its reader has gone; `terminal::say!` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout))]

mod admin;
mod admin_client;
mod ban_time;
mod bans;
mod cache;
mod certificates;
mod check;
mod cli;
mod config;
mod dashboard;
mod data_directories;
mod doctor;
mod import;
mod init;
mod kv;
mod manual;
mod named;
mod notify;
mod opcache;
mod php_hosts;
mod profile;
mod reload;
mod run;
mod serve;
mod snapshot;
mod status;
mod target;
mod terminal;
mod tools;
mod trust;
mod upgrade;
mod upstreams;

use clap::Parser;
use cli::{Command, Outboard};
use std::process::ExitCode;
use target::Target;

fn main() -> ExitCode {
    let outboard = Outboard::parse();
    let terminal = terminal::Terminal::new(outboard.color);
    match outboard.command {
        Command::Serve(arguments) => match &arguments.name {
            Some(name) => named::serve::run(name, &arguments, &terminal),
            None => serve::run(&arguments, &terminal),
        },
        Command::Run(arguments) => run::run(&arguments, &terminal),
        Command::Check(arguments) => check::run(&arguments, &terminal),
        Command::Config { action } => config::run(&action, &terminal),
        Command::Import(arguments) => import::run(&arguments, &terminal),
        Command::Start(pick) => named::start::run(&pick, &terminal),
        Command::Restart(pick) => named::stop::restart(&pick, &terminal),
        Command::Shutdown(arguments) => named::stop::shutdown(&arguments, &terminal),
        Command::Init(arguments) => init::run(&arguments, &terminal),
        Command::List(arguments) => named::show::list(&arguments, &terminal),
        Command::Status(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::show::status(pick, arguments.admin.json, &terminal),
            Ok(Target::Served(admin)) => status::run(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Reload(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::stop::reload(pick, &terminal),
            Ok(Target::Served(admin)) => reload::run(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Upgrade(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::stop::upgrade(pick, &terminal),
            Ok(Target::Served(admin)) => reload::upgrade(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Stop(arguments) => match Target::of(&arguments) {
            Ok(Target::Named(pick)) => named::stop::run(pick, &terminal),
            Ok(Target::Served(admin)) => reload::stop(admin, &terminal),
            Err(message) => terminal.fail(&message, 2),
        },
        Command::Ban(arguments) => bans::ban(&arguments, &terminal),
        Command::Unban(arguments) => bans::unban(&arguments, &terminal),
        Command::Bans(arguments) => bans::list(&arguments, &terminal),
        Command::Upstreams(arguments) => upstreams::run(&arguments, &terminal),
        Command::Cache { action } => cache::run(&action, &terminal),
        Command::Snapshot { action } => snapshot::run(&action, &terminal),
        Command::Opcache { action } => opcache::run(&action, &terminal),
        Command::Certificates(arguments) => certificates::run(&arguments, &terminal),
        Command::Trust(arguments) => trust::run(&arguments, &terminal),
        Command::Kv { action } => kv::run(&action, &terminal),
        Command::Doctor(arguments) => doctor::run(&arguments, &terminal),
        Command::Bench(arguments) => {
            tools::run(Some("bench"), &arguments, outboard.color, &terminal)
        }
        Command::Dashboard(arguments) => dashboard::run(&arguments, &terminal),
        Command::Profile(arguments) => profile::run(&arguments, &terminal),
        Command::Lab(arguments) => tools::run(None, &arguments, outboard.color, &terminal),
        Command::Spawner => match outboard_spawner::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => terminal.fail(&error.to_string(), 1),
        },
        Command::Starter { arguments } => upgrade::run_starter(arguments, &terminal),
        Command::Schema => check::print_schema(),
        Command::Completions { shell } => manual::complete(shell),
        Command::Man { dir } => manual::write_pages(&dir, &terminal),
    }
}
