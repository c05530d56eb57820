//! [`Project`]: the files under development of a unit test.

use outboard_config::Development;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, which is removed at the end.
pub(crate) struct Project(PathBuf);

impl Project {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("outboard-project-{}-{number}", std::process::id()));
        for directory in ["src", "cache", ".git", "public"] {
            fs::create_dir_all(path.join(directory)).unwrap();
        }
        fs::write(path.join("outboard.toml"), "").unwrap();
        fs::write(path.join("src/a.php"), "<?php").unwrap();
        Self(path)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    /// The path of its configuration.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.0.join("outboard.toml")
    }

    /// Watches everything but its cache.
    pub(crate) fn config(&self) -> Development {
        Development {
            watch: vec![self.0.clone()],
            ignore: vec!["cache".to_owned()],
            polling: false,
            live_reload: true,
            configuration_files: Vec::new(),
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
