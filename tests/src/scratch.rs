//! A temporary folder of a test's own, readable by the unprivileged user that servers run PHP as.
//!
//! Servers that a test binary shares are never dropped, so their folders outlive the process; each
//! new process sweeps away those whose process is gone.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, process};

const PREFIX: &str = "outboard-e2e-";

/// A temporary folder; it is removed on drop, unless the test fails: then it stays to be looked at.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a new, empty folder that every user may write to.
    pub fn new(purpose: &str) -> Scratch {
        static SWEEP: Once = Once::new();
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        SWEEP.call_once(|| sweep(&std::env::temp_dir()));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{purpose}", process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        open_to_all(&path);
        Scratch { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder inside that every user may write to.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        open_to_all(&path);
        path
    }

    /// Writes a file inside, with the folders it needs, and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
        }
        fs::write(&path, content)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("left for inspection: {}", self.path.display());
        } else {
            // A server that is still ending may write once more; the next sweep takes the rest.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Lets the user that PHP runs as write there; mode 1777, like /tmp.
pub(crate) fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o1777))
        .unwrap_or_else(|error| panic!("cannot chmod {}: {error}", path.display()));
}

/// Copies a tree, following symbolic links, so that an application gets files of its own.
pub(crate) fn copy_tree(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        match fs::metadata(&from) {
            Ok(metadata) if metadata.is_dir() => copy_tree(&from, &to)?,
            Ok(_) => drop(fs::copy(&from, &to)?),
            Err(error) if is_out_of_reach(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a tree of hard links to the files of an installed package, or of copies where the kernel
/// refuses (another file system, or files of another user). The files must not be written to.
pub(crate) fn link_tree(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        match fs::canonicalize(&from) {
            Ok(real) if real.is_dir() => match link_tree(&real, &to) {
                Err(error) if !is_out_of_reach(&error) => return Err(error),
                _ => {}
            },
            Ok(real) => {
                if fs::hard_link(&real, &to).is_err() {
                    fs::copy(&real, &to)?;
                }
            }
            Err(error) if is_out_of_reach(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Debian's trees hold links to what is not installed, and folders that are not for everybody.
fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next())
            .and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
