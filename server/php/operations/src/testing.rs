//! Entity stores of unit tests.

use crate::entities::Entities;
use outboard_config::Config;
use outboard_log::{ErrorLog, Level, Opener, Sink, Target};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, which is removed at the end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-operations-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(directory.join("www")).unwrap();
        std::fs::write(directory.join("worker.php"), "<?php").unwrap();
        Self(directory)
    }

    /// The configuration of an app in worker mode with an entity store in memory. `keys` are added to
    /// `[kv]`.
    pub(crate) fn config(&self, keys: &str) -> Config {
        let directory = self.0.display();
        let text = format!(
            "[app.site]\nroot = \"www\"\nmode = \"worker\"\n[app.site.worker]\n\
             script = \"worker.php\"\nconcurrency = 2\n[kv]\ndata_dir = \"{directory}/kv\"\n\
             durability = \"memory\"\nmax_value = \"1 KiB\"\n{keys}\n"
        );
        Config::parse(&text, &self.0.join("outboard.toml"))
            .unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"))
    }

    /// Opens that store.
    pub(crate) fn entities(&self, keys: &str) -> Rc<Entities> {
        let sink = Sink::open(Target::File(self.0.join("error.log")), Opener::default());
        let log = Rc::new(ErrorLog::new(Rc::new(sink.unwrap()), Level::Debug));
        let opened = Entities::open(&self.config(keys), None, None, &log);
        opened.expect("a valid store").expect("a store")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
