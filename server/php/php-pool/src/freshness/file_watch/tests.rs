use super::*;
use outboard_ring::boot_files::{BootFile, encode};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs;
use std::io::{Seek, Write};

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("outboard-watch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sent(text: &[u8]) -> OwnedFd {
    let mut file = File::from(memfd_create("list", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(text).unwrap();
    file.rewind().unwrap();
    file.into()
}

/// The list of these files, as they are now.
fn list(files: &[(&Path, Kind)]) -> OwnedFd {
    let mut text = Vec::new();
    for (path, kind) in files {
        let state = State::of(path, *kind).unwrap();
        let path = path.as_os_str().as_bytes();
        encode(&BootFile { path, kind: *kind, state }, &mut text);
    }
    sent(&text)
}

fn watch(files: &[(&Path, Kind)]) -> FileWatch {
    let (watch, changed) = FileWatch::begin(list(files)).unwrap();
    assert_eq!(changed, None);
    watch
}

#[test]
fn written_replaced_removed_and_new_files_have_changed() {
    let directory = Directory::new("changes");
    let (a, missing) = (directory.write("a.php", "1"), directory.0.join(".env"));
    let files = [(&*a, Kind::Contents), (&*missing, Kind::Contents)];
    let mut files = watch(&files);
    assert_eq!(files.changed(), None);
    directory.write("a.php", "22");
    assert_eq!(files.changed(), Some(a.clone()));
    assert_eq!(files.changed(), None, "each event once");
    fs::rename(directory.write("a.new", "333"), &a).unwrap();
    assert_eq!(files.changed(), Some(a.clone()));
    fs::remove_file(&a).unwrap();
    assert_eq!(files.changed(), Some(a));
    directory.write(".env", "A=1");
    assert_eq!(files.changed(), Some(missing));
}

#[test]
fn files_that_were_not_read_have_not_changed() {
    let directory = Directory::new("others");
    let a = directory.write("a.php", "1");
    let mut files = watch(&[(&a, Kind::Contents)]);
    for number in 0..100 {
        directory.write(&format!("cache-{number}"), "x");
        directory.write(&format!("below/{number}"), "x");
    }
    assert_eq!(files.changed(), None);
    // Opened to be written, and not written.
    drop(fs::OpenOptions::new().append(true).open(&a).unwrap());
    assert_eq!(files.changed(), None);
}

#[test]
fn a_directory_of_a_path_may_be_renamed_or_appear() {
    let directory = Directory::new("parts");
    let file = directory.write("vendor/a/b.php", "1");
    let (vendor, plugins) = (directory.0.join("vendor"), directory.0.join("plugins"));
    let parts = [
        (&*file, Kind::Contents),
        (&*vendor, Kind::PathPart),
        (&*plugins, Kind::PathPart),
        (&*plugins.join("c.php"), Kind::Contents),
    ];
    let mut files = watch(&parts);
    directory.write("vendor/new.php", "1");
    assert_eq!(files.changed(), None);
    fs::rename(&vendor, directory.0.join("old")).unwrap();
    assert_eq!(files.changed(), Some(vendor));
    fs::create_dir(&plugins).unwrap();
    assert_eq!(files.changed(), Some(plugins));
}

#[test]
fn a_directory_whose_names_were_read_changes_with_them() {
    let directory = Directory::new("listing");
    let plugins = directory.write("plugins/a.php", "1").parent().unwrap().to_owned();
    let mut files = watch(&[(&plugins, Kind::Listing)]);
    directory.write("plugins/b.php", "1");
    assert_eq!(files.changed(), Some(plugins));
}

#[test]
fn a_change_before_the_watch_is_found_when_it_begins() {
    let directory = Directory::new("before");
    let a = directory.write("a.php", "1");
    let list = list(&[(&a, Kind::Contents)]);
    directory.write("a.php", "22");
    let (_, changed) = FileWatch::begin(list).unwrap();
    assert_eq!(changed, Some(a));
}

#[test]
fn files_that_cannot_be_watched_are_compared() {
    let directory = Directory::new("compared");
    let a = directory.write("a.php", "1");
    let (mut files, _) = FileWatch::begin_with(None, list(&[(&a, Kind::Contents)])).unwrap();
    assert_eq!((files.count(), files.directories(), files.compared().len()), (1, 0, 1));
    assert_eq!(first_differing(files.compared()), None);
    directory.write("a.php", "22");
    assert_eq!((files.changed(), first_differing(files.compared())), (None, Some(a)));
}

#[test]
fn lost_events_are_made_up_for_by_comparing() {
    let directory = Directory::new("lost");
    let a = directory.write("a.php", "1");
    let mut files = watch(&[(&a, Kind::Contents)]);
    directory.write("a.php", "22");
    assert_eq!(files.changed(), Some(a.clone()));
    files.has_lost = true;
    assert_eq!(files.changed(), Some(a));
}

#[test]
fn a_list_of_the_host_is_not_trusted() {
    assert!(FileWatch::begin(sent(b"\x09")).is_err());
    let mut text = Vec::new();
    for path in [&b""[..], b"relative", b"/", b"a\0b", b"/etc/../.."] {
        encode(&BootFile { path, kind: Kind::Contents, state: None }, &mut text);
        encode(&BootFile { path, kind: Kind::Listing, state: None }, &mut text);
    }
    let (mut files, _) = FileWatch::begin(sent(&text)).unwrap();
    files.changed();
}
