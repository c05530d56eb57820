use super::*;
use crate::scratch::Scratch;
use crate::{CompressedFiles, Lookup, Root, RootOptions};
use std::sync::Arc;
use std::time::Instant;

const BODY: [u8; 4096] = [b'a'; 4096];

/// A root whose files are in memory up to this size.
fn open(scratch: &Scratch, small_file_bytes: u64) -> Root {
    let compressed_files = Some(Arc::new(CompressedFiles::new(64 << 10)));
    let options = RootOptions { compressed_files, small_file_bytes, ..RootOptions::default() };
    Root::open(scratch.path(), options).unwrap()
}

/// Takes on a file once its timestamp can no longer hide a change.
fn take(root: &Root, path: &str) -> Uncompressed {
    let started = Instant::now();
    loop {
        root.clear_cache();
        let Lookup::File(entry) = root.lookup(path.as_bytes(), 0) else { panic!("no {path}") };
        if let Some(file) = entry.compression(Coding::Gzip) {
            return file;
        }
        assert!(started.elapsed().as_secs() < 10, "never settles");
    }
}

#[test]
fn a_file_is_read_wherever_its_bytes_are() {
    for small_file_bytes in [0, 1 << 20] {
        let scratch = Scratch::new();
        scratch.file("a.txt", BODY);
        let root = open(&scratch, small_file_bytes);
        let unread = take(&root, "/a.txt").unread().unwrap();
        assert_eq!(std::thread::spawn(|| unread.read()).join().unwrap().unwrap(), BODY);
    }
}

#[test]
fn a_file_that_changes_before_it_is_read_has_no_bytes() {
    let shorten = |scratch: &Scratch| {
        File::options().write(true).open(scratch.at("a.txt")).unwrap().set_len(100).unwrap();
    };
    let overwrite = |scratch: &Scratch| drop(scratch.file("a.txt", [b'b'; 4096]));
    let remove = |scratch: &Scratch| std::fs::remove_file(scratch.at("a.txt")).unwrap();
    let replace = |scratch: &Scratch| {
        std::fs::rename(scratch.file("b.txt", [b'b'; 4096]), scratch.at("a.txt")).unwrap();
    };
    let changes: [&dyn Fn(&Scratch); 4] = [&shorten, &overwrite, &remove, &replace];
    for change in changes {
        let scratch = Scratch::new();
        scratch.file("a.txt", BODY);
        let root = open(&scratch, 0);
        let file = take(&root, "/a.txt");
        change(&scratch);
        assert_eq!(file.unread().unwrap().read(), None);
        if scratch.at("a.txt").exists() && !std::fs::read(scratch.at("a.txt")).unwrap().is_empty() {
            // The new version is another file, although the old one is still taken on.
            scratch.file("a.txt", [b'c'; 4096]);
            assert_eq!(take(&root, "/a.txt").unread().unwrap().read().unwrap(), [b'c'; 4096]);
        }
    }
}

#[test]
fn a_file_that_may_change_unnoticed_is_left_alone() {
    let scratch = Scratch::new();
    scratch.file("a.txt", BODY);
    let root = open(&scratch, 0);
    scratch.file("new.txt", BODY);
    let Lookup::File(entry) = root.lookup(b"/new.txt", 0) else { panic!("it exists") };
    let changed = std::fs::metadata(scratch.at("new.txt")).unwrap().modified().unwrap();
    // A machine that takes longer than a tick to come here has nothing to test.
    if changed.elapsed().unwrap().as_millis() < 10 {
        assert!(entry.compression(Coding::Gzip).is_none());
    }
}
