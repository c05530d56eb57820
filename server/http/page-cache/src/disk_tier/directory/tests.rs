use super::*;
use crate::record::encoded;
use crate::test_support::{Scratch, entry};

fn write(directory: &Directory, file: u64, path: &str) {
    directory.send(Job::Write { file, bytes: encoded(&entry(path, 1)) });
}

/// Waits until the thread has done all jobs.
fn settle(directory: Directory) {
    let path = directory.path.clone();
    directory.send(Job::Write { file: u64::MAX, bytes: b"last".to_vec() });
    while !name(&path, u64::MAX).exists() {
        std::thread::yield_now();
    }
}

fn paths(left: &[Recovered]) -> Vec<String> {
    let text = |entry: &Entry| String::from_utf8_lossy(entry.key().path_and_query()).into_owned();
    left.iter().map(|(_, _, entry)| text(entry)).collect()
}

#[test]
fn the_next_process_finds_complete_files_oldest_first() {
    let scratch = Scratch::new();
    let directory = Directory::open(&scratch.0, true).unwrap();
    let first = directory.first_file();
    for (number, path) in ["/a", "/b", "/c", "/d"].iter().enumerate() {
        write(&directory, first + number as u64, path);
    }
    let at = directory.path.clone();
    settle(directory);
    let cut = fs::read(name(&at, first + 1)).unwrap();
    fs::write(name(&at, first + 1), &cut[..cut.len() - 1]).unwrap();
    fs::write(at.join("1.new"), b"half").unwrap();
    let directory = Directory::open(&scratch.0, true).unwrap();
    assert_eq!(paths(&directory.scan()()), ["/a", "/c", "/d"]);
    assert!(!name(&at, first + 1).exists() && !at.join("1.new").exists());
}

#[test]
fn a_logged_purge_removes_files_that_a_crash_left() {
    let scratch = Scratch::new();
    let directory = Directory::open(&scratch.0, true).unwrap();
    let first = directory.first_file();
    write(&directory, first, "/a");
    write(&directory, first + 1, "/b");
    directory.log(&Selector::url(b"/a"));
    settle(directory);
    let directory = Directory::open(&scratch.0, true).unwrap();
    assert_eq!(paths(&directory.scan()()), ["/b"]);
    assert_eq!(fs::metadata(directory.path.join("purges")).unwrap().len(), 0);
}

#[test]
fn a_reload_and_a_second_server_have_their_own_directories() {
    let scratch = Scratch::new();
    let directory = Directory::open(&scratch.0, true).unwrap();
    let second = Directory::open(&scratch.0, true).unwrap();
    let after = Directory::open(&scratch.0, false).unwrap();
    assert!(directory.path != second.path && second.path != after.path);
    assert!(directory.path.exists() && second.path.exists(), "they are still in use");
}
