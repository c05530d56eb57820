//! The arguments are consistent, and every command that a page of the documentation names is one.

pub(crate) mod admin_server;
mod calls;
mod commands;
#[path = "documented_commands.rs"]
mod documented_commands;
mod mistakes;
mod pages;

use crate::Outboard;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

#[test]
fn the_arguments_are_consistent() {
    Outboard::command().debug_assert();
}

#[test]
fn every_command_on_a_page_can_be_typed() {
    let all = documented_commands::all();
    for (page, words) in &all {
        if let Err(error) = Outboard::try_parse_from(words) {
            // --help and --version are reported as errors, too. A value may be a file of the
            // reader's.
            let is_fine = !error.use_stderr() || error.kind() == ErrorKind::ValueValidation;
            assert!(is_fine, "{}: {words:?}\n{error}", page.display());
        }
    }
    assert!(all.len() > 45, "{} commands were found", all.len());
}
