//! Files that the sandbox denies to PHP: one log line for each path, with the setting that permits it.
//!
//! Called by the C library's replacements (`process/denied_files.c`) after a call has failed with `EACCES`, so
//! permitted calls cost nothing. Landlock does not restrict access(2): what it permits and `open` does not is the
//! sandbox's denial, and anything else is the file's mode, which PHP's own warning is about. Invariants: the
//! paths that were logged are in memory that all processes of the app share, which no rewind puts back; there
//! are at most [`LINES_MAX`].

use rustix::fs::{Access, access};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const LINES_MAX: usize = 256;

/// The app, and the digests of the paths that were logged.
static DENIALS: OnceLock<(String, &'static [AtomicU64])> = OnceLock::new();

/// Before the first worker is forked.
pub(super) fn begin(app: &str) -> io::Result<()> {
    let bytes = LINES_MAX * size_of::<AtomicU64>();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, which is never unmapped; zero is a valid value, and all access is atomic.
    let digests = unsafe {
        let start = mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::SHARED)?;
        std::slice::from_raw_parts(start.cast::<AtomicU64>(), LINES_MAX)
    };
    // A zygote enters its sandbox once.
    let _ = DENIALS.set((app.to_owned(), digests));
    Ok(())
}

/// How a denied call would have used its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    /// Read, or listed.
    Reads,
    /// Opened for writing, and perhaps created.
    Writes,
    /// Created, renamed or removed in its directory.
    Changes,
}

/// A call with this path has failed with `EACCES`.
pub(crate) fn denied(path: &Path, usage: Use) {
    let Some((app, digests)) = DENIALS.get() else { return };
    let Ok(path) = std::path::absolute(path) else { return };
    if is_permitted_by_mode(&path, usage) && is_first(digests, &path, usage) {
        eprintln!("{}", line(app, &path, usage));
    }
}

/// Whether the user of this process may do that.
fn is_permitted_by_mode(path: &Path, usage: Use) -> bool {
    let directory = path.parent().unwrap_or(path);
    let changes_directory = || access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    match usage {
        Use::Reads => access(path, Access::READ_OK).is_ok(),
        Use::Writes if access(path, Access::EXISTS).is_ok() => {
            access(path, Access::WRITE_OK).is_ok()
        }
        Use::Writes | Use::Changes => changes_directory(),
    }
}

/// Notes the path, if it is new and there is room.
fn is_first(digests: &[AtomicU64], path: &Path, usage: Use) -> bool {
    let mut hasher = DefaultHasher::new();
    (path, usage == Use::Reads).hash(&mut hasher);
    let digest = hasher.finish().max(1);
    for slot in digests {
        match slot.compare_exchange(0, digest, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(found) if found == digest => return false,
            Err(_) => {}
        }
    }
    false
}

fn line(app: &str, path: &Path, usage: Use) -> String {
    let (verb, key) = match usage {
        Use::Reads => ("read", "read_paths"),
        Use::Writes | Use::Changes => ("write", "write_paths"),
    };
    // Rules are for directories: a file may be replaced.
    let is_directory = usage == Use::Reads && path.is_dir();
    let directory = if is_directory { path } else { path.parent().unwrap_or(path) };
    let directory: PathBuf = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    // A name with a line break cannot forge another line.
    let text = |path: &Path| path.display().to_string().escape_debug().to_string();
    let (path, directory) = (text(path), text(&directory));
    format!(
        "sandbox: PHP may not {verb} {path}: add {key} = ['{directory}'] to [app.{app}.sandbox] to permit it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_logged_once_with_the_setting_that_permits_it() {
        let digests: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let path = Path::new("/usr/none/file");
        assert!(is_first(&digests, path, Use::Reads));
        assert!(!is_first(&digests, path, Use::Reads));
        assert!(is_first(&digests, path, Use::Writes));
        assert!(!is_first(&digests, path, Use::Changes), "the same setting permits it");
        assert!(is_first(&digests, Path::new("/usr/b"), Use::Reads));
        assert!(!is_first(&digests, Path::new("/usr/c"), Use::Reads), "there is no room");
        assert_eq!(
            line("shop", path, Use::Changes),
            "sandbox: PHP may not write /usr/none/file: add write_paths = ['/usr/none'] to \
             [app.shop.sandbox] to permit it"
        );
        let forged = line("shop", Path::new("/a\nb/c"), Use::Reads);
        assert_eq!(forged.lines().count(), 1);
        assert!(line("shop", Path::new("/usr"), Use::Reads).contains("read_paths = ['/usr']"));
    }

    #[test]
    fn what_the_mode_denies_is_not_the_sandboxes() {
        assert!(is_permitted_by_mode(Path::new("/usr"), Use::Reads));
        assert!(!is_permitted_by_mode(Path::new("/proc/self/none/file"), Use::Changes));
        assert!(!is_permitted_by_mode(Path::new("/nonexistent"), Use::Reads));
    }
}
