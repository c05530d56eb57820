//! Every command of the lab that a page of the documentation names is one.

#[path = "../../../../server/outboard/src/documented_commands.rs"]
mod documented_commands;

use super::Cli;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_on_a_page_can_be_typed() {
    let mut typed = 0;
    for (page, words) in documented_commands::all() {
        // `outboard lab` passes its arguments on, `outboard bench` is a command.
        let words = match words.get(1).map(String::as_str) {
            Some("lab") => &words[1..],
            Some("bench") => &words[..],
            _ => continue,
        };
        typed += 1;
        if let Err(error) = Cli::try_parse_from(words) {
            let is_fine = !error.use_stderr() || error.kind() == ErrorKind::ValueValidation;
            assert!(is_fine, "{}: {words:?}\n{error}", page.display());
        }
    }
    assert!(typed > 10, "{typed} commands were found");
}
