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
        let is_program = path.parent().is_some_and(|above| above.ends_with("bin"));
        let file = name.contains('.') || name.starts_with("outboard-php") || is_program;
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
        if name.ends_with("-Country.mmdb") {
            return Ok(include_bytes!("../../../../tests/fixtures/countries/countries.mmdb").into());
        }
        if name.contains("htpasswd") {
            return Ok(b"ops:$2y$10$jg44ROIOPEAL4.BPqcHtj.RTllnd4NFJPTSSVPQgYPDtgKrhVs1bG\n".into());
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory with files, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("outboard-config-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(fs::canonicalize(path).unwrap())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_exists_is_found_through_links() {
        let folder = Folder::new("look");
        let at = |name: &str| folder.0.join(name);
        fs::write(at("file"), "0123456789").unwrap();
        fs::write(at("program"), "").unwrap();
        fs::set_permissions(at("program"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o644)).unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("gone"), at("dangling")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, expected) in [
            ("", Some(Found::Directory)),
            ("file", Some(Found::File { executable: false })),
            ("link", Some(Found::File { executable: false })),
            ("program", Some(Found::File { executable: true })),
            ("socket", Some(Found::Other)),
            ("dangling", None),
            ("gone", None),
            ("file/below", None),
        ] {
            let found = RealDisk::OWN.look(&at(name));
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{name}");
            let is_readable = RealDisk::OWN.readable(&at(name)).is_ok();
            assert_eq!(is_readable, expected.is_some_and(|found| found != Found::Other), "{name}");
        }
        assert_eq!(RealDisk::OWN.canonical(&at("link/../link")).ok(), None);
        assert_eq!(RealDisk::OWN.canonical(&at("link")).unwrap(), at("file"));
        assert_eq!(RealDisk::OWN.names(&folder.0, 3).unwrap().len(), 3);
        assert_eq!(RealDisk::OWN.names(&folder.0, 99).unwrap().len(), 5);
    }

    #[test]
    fn a_file_is_read_up_to_one_byte_more_than_the_most() {
        let folder = Folder::new("read");
        let path = folder.0.join("file");
        fs::write(&path, "0123456789").unwrap();
        for (most, expected) in [(0, "0"), (8, "012345678"), (9, "0123456789"), (10, "0123456789")]
        {
            assert_eq!(RealDisk::OWN.read(&path, most).unwrap(), expected.as_bytes(), "{most}");
        }
        assert!(RealDisk::OWN.read(&folder.0, 10).is_err(), "a directory");
    }

    #[test]
    fn what_another_opens_with_more_rights_is_read() {
        let opened = std::cell::RefCell::new(Vec::new());
        let open = |path: &Path| {
            opened.borrow_mut().push(path.to_owned());
            match path.ends_with("secret") {
                true => fs::File::open("/proc/self/cmdline"),
                false => Err(io::ErrorKind::PermissionDenied.into()),
            }
        };
        let disk = RealDisk { open: &open };
        assert!(!disk.read(Path::new("/a/secret"), 99).unwrap().is_empty());
        let denied = disk.read(Path::new("/a/other"), 99).unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(*opened.borrow(), [Path::new("/a/secret"), Path::new("/a/other")]);
    }

    #[test]
    fn a_reason_has_no_number() {
        let error = fs::File::open("/does/not/exist").unwrap_err();
        assert_eq!(reason(&error), "No such file or directory");
        assert_eq!(reason(&io::Error::other("it is larger than 1 MiB")), "it is larger than 1 MiB");
    }
}
