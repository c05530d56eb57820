//! A temporary directory for one test, removed at its end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

static COUNT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-static-files-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self { path: path.canonicalize().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Writes a file and creates its directories.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Sets a file's modification time to a moment in the past.
    pub(crate) fn age(&self, name: &str, age_s: u64) {
        self.date(name, SystemTime::now() - Duration::from_secs(age_s));
    }

    pub(crate) fn date(&self, name: &str, time: SystemTime) {
        let file = std::fs::File::options().append(true).open(self.at(name)).unwrap();
        file.set_modified(time).unwrap();
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A left-over directory does not fail the test.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
