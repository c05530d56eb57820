//! What the PHP of an app is confined to.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{self, Php, SandboxEntry, SandboxLevel};
use crate::scalar::{Fault, FilePath};
use std::path::PathBuf;

/// What PHP can reach in addition to what every app can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Whether it starts no programs, and writes and connects only to what is listed.
    pub is_strict: bool,
    /// Files and directories that it may read; absolute, exist.
    pub read_paths: Vec<PathBuf>,
    /// Files and directories that it may write; absolute, exist.
    pub write_paths: Vec<PathBuf>,
    /// TCP ports that it may connect to if it is strict.
    pub connect_ports: Vec<u16>,
}

/// `None` when it is off. Default: on, unless programs may gain privileges, which excludes it.
pub(super) fn sandbox(
    raw: Option<&SandboxEntry>,
    php: &Php,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Sandbox> {
    let table = match raw {
        None if !php.no_new_privileges => return None,
        None => raw::Sandbox::default(),
        Some(SandboxEntry::Level(level)) => {
            raw::Sandbox { level: *level, ..raw::Sandbox::default() }
        }
        Some(SandboxEntry::Table(table)) => table.clone(),
    };
    if !table.connect_ports.is_empty() && table.level != SandboxLevel::Strict {
        let fault =
            Fault::new("`connect_ports` restricts connections only with level = \"strict\"")
                .hint("add level = \"strict\", or remove `connect_ports`");
        context.value(&[place, &["connect_ports"]].concat(), Kind::Conflict, fault);
    }
    if table.level == SandboxLevel::Off {
        return None;
    }
    if !php.no_new_privileges {
        let fault = Fault::new("the kernel has no sandbox for programs that may gain privileges")
            .hint("write sandbox = \"off\", or remove php.no_new_privileges = false");
        context.value(place, Kind::Conflict, fault);
    }
    Some(Sandbox {
        is_strict: table.level == SandboxLevel::Strict,
        read_paths: existing(&table.read_paths, &[place, &["read_paths"]].concat(), context),
        write_paths: existing(&table.write_paths, &[place, &["write_paths"]].concat(), context),
        connect_ports: table.connect_ports,
    })
}

fn existing(written: &[FilePath], place: &[&str], context: &mut Context<'_>) -> Vec<PathBuf> {
    let one = |(index, path): (usize, &FilePath)| {
        let step = index.to_string();
        context.existing(&[place, &[step.as_str()]].concat(), path)
    };
    written.iter().enumerate().map(one).collect()
}
