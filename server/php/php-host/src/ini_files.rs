//! Selects php.ini, and the directory of further ini files, if the settings do not.
//!
//! Called by start-up. Debian has a directory for each way to run PHP: `/etc/php/8.2/cli`, `…/fpm`,
//! `…/embed`. The engine's default would be "embed", whose files are never edited; an application
//! expects those of php-fpm. So: `outboard`'s, else `fpm`'s, else the engine's default. Invariant:
//! paths from the settings or the environment are not replaced.

use outboard_ring::control::HostSettings;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The parent of those directories (build.rs).
const HOME: &str = env!("OUTBOARD_PHP_INI_HOME");

/// In order of preference. A program that runs as in the command line prefers the files of that.
const DIRECTORIES: [&str; 2] = ["outboard", "fpm"];
const DIRECTORIES_OF_CLI: [&str; 3] = ["outboard", "cli", "fpm"];

/// The files to read; `None`: the engine's default.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IniFiles<'a> {
    /// php.ini.
    pub(crate) file: Option<Cow<'a, Path>>,
    /// The directory of further files.
    pub(crate) scan_dir: Option<Cow<'a, Path>>,
}

impl<'a> IniFiles<'a> {
    /// The two are independent: `outboard/php.ini` works with `fpm/conf.d`, which loads the
    /// extensions.
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
    let is_cli = settings.sapi_name == "cli";
    let directories: &[&str] = if is_cli { &DIRECTORIES_OF_CLI } else { &DIRECTORIES };
    directories.iter().map(|directory| home.join(directory).join(name)).find(|path| path.exists())
}

#[cfg(test)]
mod tests;
