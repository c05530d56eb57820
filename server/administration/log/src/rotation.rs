//! [`Rotation`]: when a log file is renamed, and how many of its predecessors are stored.
//!
//! Part of the target of a log; a thread for files carries it out. Invariant: the file itself is renamed
//! last, so that a failure leaves the log as it was, at most without its oldest predecessors.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The size from which a file is renamed; 0: any.
    pub size_bytes: u64,
    /// The age from which a file is renamed; 0: any.
    pub age_ms: u64,
    /// The number of renamed files that are stored, at least one.
    pub keep: u32,
}

impl Rotation {
    /// Whether a file is to be renamed. An empty one is not.
    pub(crate) fn is_due(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let is_large = self.size_bytes > 0 && metadata.size() >= self.size_bytes;
        let is_old = self.age_ms > 0
            && metadata.created().is_ok_and(|created| {
                let age = SystemTime::now().duration_since(created).unwrap_or_default();
                age.as_millis() >= u128::from(self.age_ms)
            });
        metadata.is_file() && metadata.size() > 0 && (is_large || is_old)
    }

    /// Renames `log` to `log.1`, `log.1` to `log.2`, and so on; the last one is replaced.
    pub(crate) fn rename(&self, path: &Path) -> io::Result<()> {
        for number in (1..self.keep.max(1)).rev() {
            match std::fs::rename(numbered(path, number), numbered(path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(path, numbered(path, 1))
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_predecessors_as_configured_are_stored() {
        let directory =
            std::env::temp_dir().join(format!("outboard-rotation-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("log");
        let rotation = Rotation { size_bytes: 4, age_ms: 0, keep: 2 };
        for content in ["one 1", "two 2", "three"] {
            std::fs::write(&path, content).unwrap();
            assert!(rotation.is_due(&File::open(&path).unwrap()));
            rotation.rename(&path).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).ok();
        assert_eq!(read("log.1").as_deref(), Some("three"));
        assert_eq!(read("log.2").as_deref(), Some("two 2"));
        assert_eq!((read("log"), read("log.3")), (None, None));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_small_young_or_empty_file_is_left() {
        let path = std::env::temp_dir().join(format!("outboard-young-{}", std::process::id()));
        std::fs::write(&path, "abc").unwrap();
        let is_due = |size_bytes, age_ms| {
            Rotation { size_bytes, age_ms, keep: 1 }.is_due(&File::open(&path).unwrap())
        };
        assert!(!is_due(4, 0) && !is_due(0, 3_600_000) && !is_due(0, 0));
        assert!(is_due(3, 0));
        std::fs::write(&path, "").unwrap();
        assert!(!is_due(1, 1), "it is empty");
        std::fs::remove_file(&path).unwrap();
    }
}
