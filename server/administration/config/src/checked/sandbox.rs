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

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::*;
    use std::path::Path;

    #[test]
    fn an_app_is_confined_unless_its_programs_may_gain_privileges() {
        let default = site("").sandbox.expect("it is on");
        assert!(!default.is_strict && default.read_paths.is_empty());
        assert_eq!(site("php.no_new_privileges = false\n").sandbox, None);
        for off in ["sandbox = \"off\"", "sandbox = { level = \"off\", read_paths = [\"a\"] }"] {
            assert_eq!(site(&format!("{off}\n")).sandbox, None, "{off}");
        }
        assert!(site("sandbox = \"strict\"\n").sandbox.is_some_and(|sandbox| sandbox.is_strict));
    }

    #[test]
    fn paths_and_ports_of_a_table_are_absolute_and_listed() {
        let text = "[app.site.sandbox]\nlevel = \"strict\"\nread_paths = [\"data\", \"/etc/x.pem\"]\n\
                    write_paths = [\"var\"]\nconnect_ports = [3306, 65535]\n";
        let sandbox = site(text).sandbox.expect("it is on");
        assert_eq!(sandbox.read_paths, [Path::new("/srv/www/data"), Path::new("/etc/x.pem")]);
        assert_eq!(sandbox.write_paths, [Path::new("/srv/www/var")]);
        assert_eq!(sandbox.connect_ports, [3306, 65535]);
    }

    #[test]
    fn settings_that_have_no_effect_are_conflicts() {
        let text = format!("{APP}sandbox = {{ connect_ports = [3306] }}\n");
        assert_error(&text, Kind::Conflict, 3, "only with level = \"strict\"");
        let text = format!("{APP}sandbox = \"default\"\nphp.no_new_privileges = false\n");
        assert_error(&text, Kind::Conflict, 3, "programs that may gain privileges");
        let text = format!("{APP}sandbox = {{ level = \"strict\", connect_ports = [0] }}\n");
        assert_error(&text, Kind::OutOfRange, 3, "0 is out of range");
        let text = format!("{APP}sandbox = \"tight\"\n");
        assert_error(&text, Kind::OutOfRange, 3, "strict");
    }
}
