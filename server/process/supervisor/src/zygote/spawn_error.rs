//! [`SpawnError`]: why a zygote could not be started, and what the operator can do about it.
//!
//! Returned by [`super::Zygote`], printed by its caller. Invariant: a host that is missing and one that
//! cannot be executed differ.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// Why a zygote could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// No socket or pipe could be made.
    Descriptors(io::Error),
    /// There is no host at this path.
    Missing(PathBuf),
    /// The host is there but must not, or cannot, be executed.
    Exec {
        /// The host.
        path: PathBuf,
        /// What `execve(2)` or `fork(2)` reported.
        error: io::Error,
    },
    /// The settings could not be handed over.
    Settings(io::Error),
}

impl SpawnError {
    pub(super) fn of_exec(path: &Path, error: io::Error) -> Self {
        // execve(2) also says ENOENT of a file that is there but whose interpreter is not.
        if error.kind() == io::ErrorKind::NotFound && !path.exists() {
            Self::Missing(path.to_owned())
        } else {
            Self::Exec { path: path.to_owned(), error }
        }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Self::Descriptors(_) => "raise the limit of open files (ulimit -n, LimitNOFILE=)",
            Self::Missing(path) => match version_of(path) {
                Some(version) => {
                    return format!(
                        "install the package outboard-php{version}, or build it: \
                         `OUTBOARD_PHP_CONFIG=php-config{version} cargo build --release -p outboard-php`"
                    )
                    .into();
                }
                None => {
                    "install/build it: `cargo build --release -p outboard-php` makes it, next to \
                     `outboard`"
                }
            },
            Self::Exec { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "make it executable (chmod +x), on a file system that is not mounted noexec"
            }
            Self::Exec { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                "its program interpreter is missing: build it on, or for, this system"
            }
            Self::Exec { error, .. } if error.kind() == io::ErrorKind::Unsupported => {
                "what the server may do as root is settled when root starts it"
            }
            Self::Exec { .. } => "build it again on, or for, this system",
            Self::Settings(_) => "hand PHP fewer ini values and environment variables",
        };
        hint.into()
    }
}

/// That of a package's host: `8.4` of `outboard-php8.4`.
fn version_of(path: &Path) -> Option<&str> {
    let version = path.file_name()?.to_str()?.strip_prefix("outboard-php")?;
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

impl std::fmt::Display for SpawnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Descriptors(error) => write!(f, "no socket or pipe for the PHP host: {error}")?,
            Self::Missing(path) => write!(f, "the PHP host {} is missing", path.display())?,
            Self::Exec { path, error } => {
                write!(f, "the PHP host {} cannot be started: {error}", path.display())?;
            }
            Self::Settings(error) => write!(f, "the PHP host did not take its settings: {error}")?,
        }
        write!(f, "; {}", self.hint())
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Descriptors(error) | Self::Exec { error, .. } | Self::Settings(error) => {
                Some(error)
            }
            Self::Missing(_) => None,
        }
    }
}
