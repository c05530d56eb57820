//! The questions that checking a configuration asks of the file system.
//!
//! Behind a trait, so that examples which name `/srv/blog` can be checked on any machine.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Folder,
    File { executable: bool },
    Other,
}

pub(crate) trait Disk {
    /// What is at `path`, links followed.
    fn look(&self, path: &Path) -> io::Result<Found>;

    /// Whether the folder can be listed or the file can be opened.
    fn readable(&self, path: &Path) -> io::Result<()>;

    /// The path without links and `..`.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
}

/// The machine's own.
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn look(&self, path: &Path) -> io::Result<Found> {
        let metadata = fs::metadata(path)?;
        Ok(if metadata.is_dir() {
            Found::Folder
        } else if metadata.is_file() {
            Found::File { executable: metadata.permissions().mode() & 0o111 != 0 }
        } else {
            Found::Other
        })
    }

    fn readable(&self, path: &Path) -> io::Result<()> {
        match fs::metadata(path)?.is_dir() {
            true => fs::read_dir(path).map(|_| ()),
            false => fs::File::open(path).map(|_| ()),
        }
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }
}

/// A disk on which everything is that is looked for: names with a dot are files.
#[cfg(test)]
pub(crate) struct FullDisk;

#[cfg(test)]
impl Disk for FullDisk {
    fn look(&self, path: &Path) -> io::Result<Found> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = name.contains('.') || name.starts_with("outboard-php");
        Ok(if file { Found::File { executable: true } } else { Found::Folder })
    }

    fn readable(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Err(io::Error::other(path.display().to_string()))
    }
}

/// The error without its number: "No such file or directory".
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}
