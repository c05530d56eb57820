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

    /// The path without links and `..`.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// The content of a file: at most `max_bytes` and one more.
    fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>>;

    /// The names in a directory, at most `max`.
    fn names(&self, directory: &Path, max: usize) -> io::Result<Vec<String>>;
}

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

    fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (self.open)(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn names(&self, directory: &Path, max: usize) -> io::Result<Vec<String>> {
        let names = fs::read_dir(directory)?.take(max);
        names.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// A disk on which every path exists: names with a dot are files.
#[cfg(test)]
pub(crate) struct FullDisk;

#[cfg(test)]
impl Disk for FullDisk {
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

    fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains("htpasswd") {
            return Ok(Vec::new());
        }
        Ok(format!("content of {name}\n").into_bytes())
    }

    fn names(&self, _: &Path, _: usize) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The error without its number: "No such file or directory".
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}
