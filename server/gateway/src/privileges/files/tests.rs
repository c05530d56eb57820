//! Owners of files. Changes of the owner need root; without it, only files of the own user change.

use super::*;
use rustix::process::{getegid, geteuid};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-privileges-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn config(&self, text: &str) -> Config {
        let text = format!("{text}\n[app.site]\nroot = \"{}\"\n", self.0.display());
        Config::parse(&text, &self.0.join("outboard.toml")).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn user(uid: u32) -> User {
    User { uid: Uid::from_raw(uid), gid: Gid::from_raw(uid), groups: Vec::new() }
}

/// The user of the test: root can give files to another.
fn own() -> User {
    match geteuid().is_root() {
        true => user(65_534),
        false => User { uid: geteuid(), gid: getegid(), groups: Vec::new() },
    }
}

fn uid_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

#[test]
fn only_logs_in_files_change_their_owner() {
    let directory = Directory::new();
    let config =
        directory.config("[log.access]\npath = \"a.log\"\n[log.error]\npath = \"stderr\"\n");
    assert_eq!(logs(&config).collect::<Vec<_>>().first(), Some(&&*directory.0.join("a.log")));
    assert!(logs(&config).all(|path| path.starts_with(&directory.0)));
    change_owner(&config, &own(), &[]).unwrap();
    assert_eq!(uid_of(&directory.0.join("a.log")), own().uid.as_raw());
}

#[test]
fn a_log_with_a_second_name_keeps_its_owner() {
    let directory = Directory::new();
    let (log, other) = (directory.0.join("a.log"), directory.0.join("other"));
    fs::write(&other, "of another user").unwrap();
    fs::hard_link(&other, &log).unwrap();
    change_log_owner(&log, &own()).unwrap();
    assert_eq!(uid_of(&log), geteuid().as_raw());
}

#[test]
fn a_new_directory_is_for_the_gateway_alone() {
    let directory = Directory::new();
    let cache = directory.0.join("deep/cache");
    change_directory_owner(&cache, &[], &own(), &[]).unwrap();
    let mode = fs::metadata(&cache).unwrap().permissions().mode();
    assert_eq!((uid_of(&cache), mode & 0o777), (own().uid.as_raw(), 0o700));
}

/// On a fresh system nothing of /var/lib/outboard/certificates exists.
#[test]
fn the_gateway_passes_through_the_parents_of_a_new_directory() {
    let directory = Directory::new();
    let parent = directory.0.join("lib");
    let store = parent.join("store");
    change_directory_owner(&store, &[], &own(), &[]).unwrap();
    assert_eq!(uid_of(&store), own().uid.as_raw());
    assert_eq!(uid_of(&parent), geteuid().as_raw());
    assert_eq!(fs::metadata(&parent).unwrap().permissions().mode() & 0o055, 0o055);
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_directory_with_other_files_keeps_its_owner() {
    let directory = Directory::new();
    fs::write(directory.0.join("foreign"), "").unwrap();
    fs::create_dir(directory.0.join("site")).unwrap();
    fs::write(directory.0.join("site/page"), "").unwrap();
    let apps = [user(geteuid().as_raw())];
    change_directory_owner(&directory.0, &["site".to_owned()], &own(), &apps).unwrap();
    let unchanged = geteuid().as_raw();
    assert_eq!(uid_of(&directory.0), unchanged);
    assert_eq!(uid_of(&directory.0.join("foreign")), unchanged);
    assert_eq!(uid_of(&directory.0.join("site/page")), own().uid.as_raw());
}

#[test]
fn links_out_of_a_directory_are_not_followed() {
    let (directory, outside) = (Directory::new(), Directory::new());
    fs::write(outside.0.join("secret"), "").unwrap();
    fs::create_dir(outside.0.join("secrets")).unwrap();
    let tree = directory.0.join("site");
    fs::create_dir(&tree).unwrap();
    symlink(outside.0.join("secret"), tree.join("file")).unwrap();
    symlink(outside.0.join("secrets"), tree.join("directory")).unwrap();
    fs::hard_link(outside.0.join("secret"), tree.join("hard")).unwrap();
    change_tree_owner(&tree, &own(), &[user(geteuid().as_raw())]).unwrap();
    for path in [outside.0.join("secret"), outside.0.join("secrets"), tree.join("file")] {
        assert_eq!(uid_of(&path), geteuid().as_raw(), "{}", path.display());
    }
    change_tree_owner(&directory.0.join("none"), &own(), &[]).unwrap();
}

#[test]
fn files_of_other_users_were_not_the_servers() {
    let apps = [user(1001), user(1002)];
    assert!(was_owned_by_server(0, &[]) && was_owned_by_server(1002, &apps));
    assert!(!was_owned_by_server(1003, &apps) && !was_owned_by_server(1001, &[]));
}

#[test]
fn a_missing_directory_is_named_with_its_key() {
    let directory = Directory::new();
    check(&directory.config("")).unwrap();
    let mut config = directory.config("");
    config.io.temp_dir = directory.0.join("none");
    let error = check(&config).unwrap_err();
    assert!(error.contains("io.temp_dir") && error.contains("/none"), "{error}");
    fs::remove_dir_all(&directory.0).unwrap();
    let error = check(&config).unwrap_err();
    assert!(error.contains("cannot read") && error.contains("gateway_user"), "{error}");
}
