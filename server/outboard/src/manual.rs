//! `outboard completions` and `outboard man`: shell completions and manual pages.
//!
//! Both are generated from the arguments ([`crate::Outboard`]), so they cannot differ from them.

use crate::Outboard;
use crate::terminal::{Terminal, say, show};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn complete(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Outboard::command(), "outboard", &mut script);
    show(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

pub(crate) fn write_pages(dir: &Path, terminal: &Terminal) -> ExitCode {
    let written = std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Outboard::command(), dir));
    match written {
        Ok(()) => {
            say!("manual pages are in {}", dir.display());
            ExitCode::SUCCESS
        }
        Err(error) => terminal.fail(&format!("{}: {error}", dir.display()), 1),
    }
}
