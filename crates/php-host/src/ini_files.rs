//! Which php.ini, and which folder of further ini files, the engine reads when nobody says.
//!
//! Called by start-up. Debian keeps a folder for each way of running PHP: `/etc/php/8.2/cli`,
//! `…/fpm`, `…/embed`. To the engine we are "embed", whose files nobody edits; an application that
//! moves here expects those of php-fpm. So: `outboard`'s, else `fpm`'s, else what the engine finds
//! by itself. Invariant: what the settings or the environment name is not replaced.

use outboard_ring::control::HostSettings;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The parent of those folders (build.rs).
const HOME: &str = env!("OUTBOARD_PHP_INI_HOME");

/// In the order in which they are asked. A program that is run as by the command line has the
/// latter's files before php-fpm's.
const FOLDERS: [&str; 2] = ["outboard", "fpm"];
const FOLDERS_OF_CLI: [&str; 3] = ["outboard", "cli", "fpm"];

/// The files to read; `None`: what the engine finds by itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IniFiles<'a> {
    /// php.ini.
    pub(crate) file: Option<Cow<'a, Path>>,
    /// The folder of further files.
    pub(crate) scan_dir: Option<Cow<'a, Path>>,
}

impl<'a> IniFiles<'a> {
    /// Each is looked for on its own: `outboard/php.ini` goes together with `fpm/conf.d`, where the
    /// extensions are.
    pub(crate) fn of(settings: &'a HostSettings) -> Self {
        Self::below(Path::new(HOME), settings)
    }

    fn below(home: &Path, settings: &'a HostSettings) -> Self {
        let or_first = |named: &'a Option<PathBuf>, variable: &str, name: &str| match named {
            Some(path) => Some(Cow::Borrowed(path.as_path())),
            None if settings.env.contains_key(variable) => None,
            None => first(home, settings, name).map(Cow::Owned),
        };
        Self {
            file: or_first(&settings.ini_file, "PHPRC", "php.ini"),
            scan_dir: or_first(&settings.ini_scan_dir, "PHP_INI_SCAN_DIR", "conf.d"),
        }
    }
}

fn first(home: &Path, settings: &HostSettings, name: &str) -> Option<PathBuf> {
    let folders: &[&str] = if settings.sapi_name == "cli" { &FOLDERS_OF_CLI } else { &FOLDERS };
    folders.iter().map(|folder| home.join(folder).join(name)).find(|path| path.exists())
}

#[cfg(test)]
mod tests;
