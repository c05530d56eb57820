//! A change of the file system is noticed within the configured time, and no sooner.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use super::*;

#[test]
fn a_changed_file_is_noticed_when_its_time_is_up() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "old");
    let root = open(&scratch);
    assert_eq!(look(&root, "/a.txt", 0), "file old");
    // The same length, and within the same tick of the file system's clock.
    scratch.file("a.txt", "new");
    assert_eq!(look(&root, "/a.txt", 999), "file old");
    assert_eq!(look(&root, "/a.txt", 1000), "file new");
}

#[test]
fn a_replaced_or_deleted_file_is_noticed() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "old");
    let root = open(&scratch);
    let old = file(&root, "/a.txt", 0);
    std::fs::rename(scratch.file("b.txt", "new"), scratch.at("a.txt")).unwrap();
    let new = file(&root, "/a.txt", 1000);
    assert_ne!(old.etag(), new.etag());
    assert_eq!(new.body().unwrap().as_ref(), b"new");
    std::fs::remove_file(scratch.at("a.txt")).unwrap();
    assert_eq!(look(&root, "/a.txt", 1999), "file new");
    assert_eq!(look(&root, "/a.txt", 2000), "nothing");
    scratch.directory("a.txt");
    assert_eq!(look(&root, "/a.txt", 4000), "folder");
}

#[test]
fn a_content_swapped_behind_its_old_time_has_another_tag() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "old");
    scratch.age("a.txt", 1000);
    let time = std::fs::metadata(scratch.at("a.txt")).unwrap().modified().unwrap();
    let root = open(&scratch);
    let old = file(&root, "/a.txt", 0);
    // Until the file system's clock has ticked, a change does not change any timestamp.
    let started = Instant::now();
    let new = loop {
        std::fs::write(scratch.at("a.txt"), "new").unwrap();
        scratch.date("a.txt", time);
        let new = file(&root, "/a.txt", 1000);
        root.clear_cache();
        if new.etag() != old.etag() || started.elapsed().as_secs() > 10 {
            break new;
        }
    };
    assert_eq!(new.mtime(), old.mtime());
    assert_ne!(new.etag(), old.etag());
}

#[test]
fn a_file_that_appears_is_noticed_sooner() {
    let scratch = Scratch::new();
    let root = open(&scratch);
    assert_eq!(look(&root, "/a.txt", 0), "nothing");
    scratch.file("a.txt", "A");
    assert_eq!(look(&root, "/a.txt", 249), "nothing");
    assert_eq!(look(&root, "/a.txt", 250), "file A");
}

#[test]
fn an_unchanged_file_keeps_its_entry() {
    let scratch = Scratch::new();
    scratch.file("a.css", "A");
    scratch.file("a.css.gz", "Z");
    let root = open(&scratch);
    // An entry that was read while its timestamp could hide a change is read again.
    let started = Instant::now();
    let mut now_ms = 0;
    let mut entry = file(&root, "/a.css", now_ms);
    loop {
        now_ms += 1000;
        let next = file(&root, "/a.css", now_ms);
        if Rc::ptr_eq(&entry, &next) {
            break;
        }
        assert!(started.elapsed().as_secs() < 10, "never settles");
        entry = next;
    }
    // From now on, only a change makes another entry.
    assert!(Rc::ptr_eq(&entry, &file(&root, "/a.css", now_ms + 1000)));
    std::fs::remove_file(scratch.at("a.css.gz")).unwrap();
    let alone = file(&root, "/a.css", now_ms + 2000);
    assert!(alone.encodings().is_empty());
    scratch.file("a.css.br", "B");
    let again = file(&root, "/a.css", now_ms + 3000);
    assert_eq!(again.encodings().len(), 1);
    assert_eq!(alone.etag(), again.etag());
}

#[test]
fn an_answer_under_way_keeps_the_file_it_began_with() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "old content");
    let options = RootOptions { small_file_bytes: 0, cache_capacity: 1, ..RootOptions::default() };
    let root = Root::open(scratch.path(), options).unwrap();
    let entry = file(&root, "/a.txt", 0);
    std::fs::rename(scratch.file("b.txt", "new content!"), scratch.at("a.txt")).unwrap();
    let _evicts = root.lookup(b"/other", 0);
    assert_eq!(file(&root, "/a.txt", 0).size(), 12);
    let descriptor = entry.fd().unwrap().try_clone().unwrap();
    let mut bytes = vec![0; 11];
    std::fs::File::from(descriptor).read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, b"old content");
}

#[test]
fn a_root_that_a_deployment_moves_is_followed() {
    let scratch = Scratch::new();
    scratch.file("releases/1/a.txt", "one");
    scratch.file("releases/2/a.txt", "two");
    let current = scratch.link("releases/1", "current");
    let root = Root::open(&current, RootOptions::default()).unwrap();
    assert_eq!(look(&root, "/a.txt", 0), "file one");
    let next = scratch.link("releases/2", "next");
    std::fs::rename(next, &current).unwrap();
    assert_eq!(look(&root, "/a.txt", 999), "file one");
    assert_eq!(look(&root, "/a.txt", 1000), "file two");
    // Between two releases the old one remains in use.
    std::fs::remove_file(&current).unwrap();
    assert_eq!(look(&root, "/a.txt", 2000), "file two");
}

#[test]
fn without_a_cache_every_change_shows_at_once() {
    let scratch = Scratch::new();
    let options = RootOptions { cache_capacity: 0, ..RootOptions::default() };
    let root = Root::open(scratch.path(), options).unwrap();
    assert_eq!(look(&root, "/a.txt", 0), "nothing");
    scratch.file("a.txt", "A");
    assert_eq!(look(&root, "/a.txt", 0), "file A");
    scratch.file("a.txt", "B");
    assert_eq!(look(&root, "/a.txt", 0), "file B");
}
