//! Changes, as the kernel reports them and as files are compared.

use super::*;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

struct Project(PathBuf);

impl Project {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("outboard-tree-{}-{number}", std::process::id()));
        for directory in ["src", "cache", ".git", "public"] {
            fs::create_dir_all(path.join(directory)).unwrap();
        }
        fs::write(path.join("outboard.toml"), "").unwrap();
        fs::write(path.join("src/a.php"), "<?php").unwrap();
        Self(path)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn tree(&self, polling: bool) -> Tree {
        let config = Development {
            watch: vec![self.0.clone()],
            ignore: vec!["cache".to_owned()],
            polling,
            live_reload: true,
        };
        let (tree, warning) = Tree::watch(&config, &self.0.join("outboard.toml"));
        assert_eq!(warning, None);
        tree
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a test with both methods of watching, on a loop.
fn with_both_methods(test: fn(&Project, &mut Tree)) {
    for polling in [false, true] {
        outboard_reactor::run(async move {
            let project = Project::new();
            let mut tree = project.tree(polling);
            assert_eq!(tree.changes(), [], "nothing has changed yet");
            test(&project, &mut tree);
        })
        .unwrap();
    }
}

#[test]
fn a_written_file_is_found_once() {
    with_both_methods(|project, tree| {
        project.put("src/a.php", "<?php 1;");
        assert_eq!(tree.changes(), [Change::Code]);
        assert_eq!(tree.changes(), []);
    });
}

#[test]
fn changes_are_classified_by_their_effect() {
    with_both_methods(|project, tree| {
        for (name, change) in [
            ("outboard.toml", Change::Configuration),
            ("public/style.css", Change::Style),
            ("public/app.js", Change::Page),
            ("src/new.php", Change::Code),
            ("src/page.html.twig", Change::Code),
            (".env", Change::Code),
        ] {
            project.put(name, "changed");
            assert_eq!(tree.changes(), [change], "{name}");
        }
    });
}

#[test]
fn files_that_requests_write_are_ignored() {
    with_both_methods(|project, tree| {
        for name in [
            "cache/page.php",
            ".git/HEAD",
            "src/.a.php.swp",
            "src/a.php~",
            "data.sqlite-wal",
            "x.log",
        ] {
            project.put(name, "written");
        }
        assert_eq!(tree.changes(), []);
    });
}

#[test]
fn a_file_that_replaces_another_is_a_change() {
    with_both_methods(|project, tree| {
        project.put(".a.php.new", "<?php 2;");
        fs::rename(project.0.join(".a.php.new"), project.0.join("src/a.php")).unwrap();
        assert_eq!(tree.changes(), [Change::Code]);
        fs::remove_file(project.0.join("src/a.php")).unwrap();
        assert_eq!(tree.changes(), [Change::Code]);
    });
}

#[test]
fn files_of_a_new_directory_are_watched() {
    with_both_methods(|project, tree| {
        fs::create_dir_all(project.0.join("src/deep/er")).unwrap();
        project.put("src/deep/er/b.php", "<?php");
        assert!(tree.changes().contains(&Change::Code));
        project.put("src/deep/er/b.php", "<?php 1;");
        assert_eq!(tree.changes(), [Change::Code]);
    });
}
