//! The PHP version that is measured, and the ini values of all stacks.
//!
//! Every stack writes [`Php::ini_file`] as its php.ini. Invariant: no stack has settings of its
//! own, unless these are compared.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::system::write;

/// The ini values of all stacks: Debian's production values where they matter, opcache on.
pub const SETTINGS: &[(&str, &str)] = &[
    ("date.timezone", "UTC"),
    ("display_errors", "0"),
    ("expose_php", "0"),
    ("log_errors", "1"),
    ("max_execution_time", "30"),
    ("memory_limit", "128M"),
    ("opcache.enable", "1"),
    ("opcache.interned_strings_buffer", "8"),
    ("opcache.jit_buffer_size", "0"),
    ("opcache.max_accelerated_files", "10000"),
    ("opcache.memory_consumption", "128"),
    ("opcache.revalidate_freq", "2"),
    ("opcache.validate_timestamps", "1"),
    ("output_buffering", "4096"),
    ("request_order", "GP"),
    ("short_open_tag", "0"),
    ("variables_order", "GPCS"),
    ("zend.assertions", "-1"),
];

/// A PHP version as packaged by Debian.
pub struct Php {
    version: String,
}

impl Php {
    /// The newest version whose FPM is installed.
    pub fn find() -> Result<Self> {
        let directories = std::fs::read_dir("/etc/php").into_iter().flatten().flatten();
        let versions = directories.filter_map(|entry| entry.file_name().into_string().ok());
        let installed = versions.filter(|version| fpm_of(version).exists());
        let newest = installed.max_by_key(|version| numbers(version));
        let missing = || Error::MissingProgram { program: "php-fpm".into(), package: "php-fpm" };
        Ok(Self { version: newest.ok_or_else(missing)? })
    }

    /// Major and minor version, `8.2`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The FPM binary.
    pub fn fpm(&self) -> PathBuf {
        fpm_of(&self.version)
    }

    /// The directory of ini files that load Debian's extensions, the same for all stacks.
    pub fn scan_directory(&self) -> PathBuf {
        format!("/etc/php/{}/fpm/conf.d", self.version).into()
    }

    /// The CLI binary.
    pub fn cli(&self) -> PathBuf {
        format!("/usr/bin/php{}", self.version).into()
    }

    /// Writes the php.ini of a stack.
    pub fn ini_file(&self, path: &Path) -> Result<()> {
        self.ini_file_with(path, &[])
    }

    /// The same with further values, for a comparison about them; later lines win.
    pub fn ini_file_with(&self, path: &Path, further: &[(&str, &str)]) -> Result<()> {
        let lines = SETTINGS.iter().chain(further);
        write(path, lines.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>())
    }
}

fn fpm_of(version: &str) -> PathBuf {
    format!("/usr/sbin/php-fpm{version}").into()
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}
