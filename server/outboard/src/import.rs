//! `outboard import`: an outboard.toml for a configuration of nginx or Apache httpd.
//!
//! Invariant: standard output has the configuration or the JSON only; what was not carried over goes to
//! standard error.

use crate::terminal::{Terminal, say, show};
use clap::Args;
use outboard_import::{Imported, Kind, import};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The server whose configuration FILE is [default: recognised by the content].
    #[arg(value_name = "nginx|httpd|FILE")]
    pub(crate) first: PathBuf,
    /// The file.
    pub(crate) file: Option<PathBuf>,
    /// Write the configuration to this file, which must not exist [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print configuration and list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Larger than configurations with all their sites.
const FILE_MAX_BYTES: u64 = 4 << 20;

pub(crate) fn run(arguments: &ImportArguments, terminal: &Terminal) -> ExitCode {
    let (kind, file) = match (arguments.first.to_str(), &arguments.file) {
        (Some("nginx"), Some(file)) => (Some(Kind::Nginx), file),
        (Some("httpd" | "apache"), Some(file)) => (Some(Kind::Httpd), file),
        (_, None) => (None, &arguments.first),
        _ => return terminal.fail("write `nginx FILE`, `httpd FILE` or one file", 2),
    };
    let imported = match import(file, kind, &read) {
        Ok(imported) => imported,
        Err(error) => return terminal.fail(&error.to_string(), 2),
    };
    if let Some(out) = &arguments.out
        && let Err(error) = create(out, &imported.toml)
    {
        return terminal.fail(&format!("{} cannot be written: {error}", out.display()), 2);
    }
    print(arguments, &imported);
    ExitCode::SUCCESS
}

fn print(arguments: &ImportArguments, imported: &Imported) {
    if arguments.json {
        let omitted: Vec<_> = imported
            .omissions
            .iter()
            .map(|one| {
                json!({
                    "file": one.file, "line": one.line, "directive": one.directive,
                    "reason": one.reason,
                })
            })
            .collect();
        say!("{:#}", json!({ "configuration": imported.toml, "omitted": omitted }));
        return;
    }
    if arguments.out.is_none() {
        show(&imported.toml);
    }
    for one in &imported.omissions {
        let directive: String = one.directive.chars().filter(|c| !c.is_control()).collect();
        eprintln!("{}:{}: {directive}: {}", one.file.display(), one.line, one.reason);
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    Ok(text)
}

/// A file that exists is not replaced.
fn create(path: &Path, text: &str) -> io::Result<()> {
    File::create_new(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
