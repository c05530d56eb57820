//! File system access of the validation.
//!
//! Behind a trait, so that examples with paths such as `/srv/blog` can be validated on any machine.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What exists at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Directory,
    File { executable: bool },
    Other,
}

pub(crate) trait Disk {
    /// The kind of file at `path`, following links.
    fn look(&self, path: &Path) -> io::Result<Found>;

    /// Whether the directory can be listed or the file can be opened.
    fn readable(&self, path: &Path) -> io::Result<()>;

    /// The text of a file.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The path without links and `..`.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
}

/// A file with users has less.
const READ_MAX_BYTES: u64 = 16 << 20;

/// Opens a file for reading.
pub type Open<'a> = &'a dyn Fn(&Path) -> io::Result<fs::File>;

/// The file system of this machine.
pub(crate) struct RealDisk<'a> {
    /// May be able to open files that this process cannot.
    pub(crate) open: Open<'a>,
}

impl RealDisk<'static> {
    /// As this process's user sees it.
    pub(crate) const OWN: Self = RealDisk { open: &|path| fs::File::open(path) };
}

impl RealDisk<'_> {
    fn metadata(&self, path: &Path) -> io::Result<fs::Metadata> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                (self.open)(path).and_then(|file| file.metadata()).map_err(|_| error)
            }
            found => found,
        }
    }
}

impl Disk for RealDisk<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        (self.open)(path)?.take(READ_MAX_BYTES).read_to_string(&mut text)?;
        Ok(text)
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let metadata = self.metadata(path)?;
        Ok(if metadata.is_dir() {
            Found::Directory
        } else if metadata.is_file() {
            Found::File { executable: metadata.permissions().mode() & 0o111 != 0 }
        } else {
            Found::Other
        })
    }

    fn readable(&self, path: &Path) -> io::Result<()> {
        match self.metadata(path)?.is_dir() {
            true => fs::read_dir(path).map(|_| ()),
            false => (self.open)(path).map(|_| ()),
        }
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }
}

/// A disk on which every path exists: names with a dot are files.
#[cfg(test)]
pub(crate) struct FullDisk;

#[cfg(test)]
impl Disk for FullDisk {
    fn read(&self, _: &Path) -> io::Result<String> {
        Ok(String::new())
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = name.contains('.') || name.starts_with("outboard-php");
        Ok(if file { Found::File { executable: true } } else { Found::Directory })
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
