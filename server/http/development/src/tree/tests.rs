//! Changes, as the kernel reports them and as files are compared.

use super::*;
use crate::test_project::Project;
use outboard_reactor::testing::in_loop;
use std::fs;

/// Runs a test with both methods of watching, on a loop.
fn with_both_methods(test: fn(&Project, &mut Tree)) {
    for polling in [false, true] {
        in_loop(async move {
            let project = Project::new();
            let config = Development { polling, ..project.config() };
            let (mut tree, warning) = Tree::watch(&config, &project.configuration());
            assert_eq!(warning, None);
            assert_eq!(tree.changes(), [], "nothing has changed yet");
            test(&project, &mut tree);
        });
    }
}

#[test]
fn a_written_file_is_found_once() {
    with_both_methods(|project, tree| {
        project.write("src/a.php", "<?php 1;");
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
            project.write(name, "changed");
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
            project.write(name, "written");
        }
        assert_eq!(tree.changes(), []);
    });
}

#[test]
fn a_file_that_replaces_another_is_a_change() {
    with_both_methods(|project, tree| {
        project.write(".a.php.new", "<?php 2;");
        fs::rename(project.directory().join(".a.php.new"), project.directory().join("src/a.php"))
            .unwrap();
        assert_eq!(tree.changes(), [Change::Code]);
        fs::remove_file(project.directory().join("src/a.php")).unwrap();
        assert_eq!(tree.changes(), [Change::Code]);
    });
}

#[test]
fn files_of_a_new_directory_are_watched() {
    with_both_methods(|project, tree| {
        fs::create_dir_all(project.directory().join("src/deep/er")).unwrap();
        project.write("src/deep/er/b.php", "<?php");
        assert!(tree.changes().contains(&Change::Code));
        project.write("src/deep/er/b.php", "<?php 1;");
        assert_eq!(tree.changes(), [Change::Code]);
    });
}

#[test]
fn ignored_directories_are_ignored_at_any_depth() {
    with_both_methods(|project, tree| {
        fs::create_dir_all(project.directory().join("src/cache")).unwrap();
        fs::create_dir_all(project.directory().join("src/.hidden")).unwrap();
        tree.changes();
        project.write("src/cache/b.php", "<?php");
        project.write("src/.hidden/c.php", "<?php");
        assert_eq!(tree.changes(), []);
    });
}

#[test]
fn a_loop_of_links_is_walked_to_its_bound() {
    with_both_methods(|project, _| {
        std::os::unix::fs::symlink("..", project.directory().join("src/loop")).unwrap();
        let (mut tree, _) = Tree::watch(&project.config(), &project.configuration());
        project.write("src/a.php", "<?php 1;");
        assert!(tree.changes().contains(&Change::Code));
    });
}

#[test]
fn a_removed_directory_is_a_change_and_not_watched_any_more() {
    with_both_methods(|project, tree| {
        fs::remove_dir_all(project.directory().join("src")).unwrap();
        assert_eq!(tree.changes(), [Change::Code]);
        fs::create_dir(project.directory().join("src")).unwrap();
        tree.changes();
        project.write("src/new.php", "<?php");
        assert_eq!(tree.changes(), [Change::Code], "the new directory is watched");
    });
}

#[test]
fn a_link_to_a_file_is_a_change() {
    with_both_methods(|project, tree| {
        let link = project.directory().join("src/link.php");
        std::os::unix::fs::symlink("a.php", link).unwrap();
        assert_eq!(tree.changes(), [Change::Code]);
    });
}

#[test]
fn a_new_file_is_reported_when_it_is_complete() {
    in_loop(async {
        let project = Project::new();
        let (mut tree, warning) = Tree::watch(&project.config(), &project.configuration());
        assert_eq!((warning, tree.signal().is_some()), (None, true));
        let mut file = fs::File::create(project.directory().join("src/b.php")).unwrap();
        assert_eq!(tree.changes(), []);
        std::io::Write::write_all(&mut file, b"<?php").unwrap();
        drop(file);
        assert_eq!(tree.changes(), [Change::Code]);
    });
}

#[test]
fn a_missing_directory_has_no_changes_and_no_error() {
    with_both_methods(|project, _| {
        let config =
            Development { watch: vec![project.directory().join("none")], ..project.config() };
        let (mut tree, warning) = Tree::watch(&config, &project.configuration());
        assert_eq!((warning, tree.changes()), (None, vec![]));
        project.write("outboard.toml", "changed");
        assert_eq!(tree.changes(), [Change::Configuration]);
    });
}

#[test]
fn an_included_file_and_a_secret_are_configuration() {
    with_both_methods(|project, _| {
        let outside = Project::new();
        fs::create_dir(project.directory().join("conf.d")).unwrap();
        let files = [project.directory().join("conf.d/a.toml"), outside.directory().join("secret")];
        project.write("conf.d/a.toml", "");
        outside.write("secret", "first");
        let config = Development { configuration_files: files.to_vec(), ..project.config() };
        let (mut tree, _) = Tree::watch(&config, &project.configuration());
        project.write("conf.d/a.toml", "x = 1");
        assert_eq!(tree.changes(), [Change::Configuration]);
        outside.write("secret", "another");
        assert_eq!(tree.changes(), [Change::Configuration]);
    });
}
