//! What is not in memory is looked up by another thread, with the same result.

use super::*;

/// Looks a path up without waiting; where that is not possible, in another thread.
fn look_elsewhere(root: &Root, path: &str, now_ms: u64) -> (bool, String) {
    let (is_cold, found) = match root.lookup_in_memory(path.as_bytes(), now_ms) {
        Ok(found) => (false, found),
        Err(cold) => {
            let result = std::thread::spawn(|| cold.run()).join().unwrap();
            (true, root.complete(result, now_ms))
        }
    };
    (is_cold, describe(found))
}

/// Removes a file's bytes from memory, where the file system allows that.
fn evict(scratch: &Scratch, name: &str) {
    let file = std::fs::File::open(scratch.at(name)).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[test]
fn a_file_that_is_not_in_memory_is_read_by_another_thread() {
    let scratch = Scratch::new();
    for name in ["a.css", "b.css", "b.css.br"] {
        scratch.file(name, "content");
        evict(&scratch, name);
    }
    let root = open(&scratch);
    for path in ["/a.css", "/b.css"] {
        assert_eq!(look_elsewhere(&root, path, 0), (true, "file content".to_owned()));
        assert_eq!(look_elsewhere(&root, path, 0), (false, "file content".to_owned()), "cached");
    }
    assert_eq!(file(&root, "/b.css", 0).encodings().len(), 1);
}

#[test]
fn a_name_that_the_kernel_has_not_seen_is_not_waited_for() {
    let scratch = Scratch::new();
    let root = open(&scratch);
    assert_eq!(look_elsewhere(&root, "/missing", 0), (true, "nothing".to_owned()));
    assert_eq!(look_elsewhere(&root, "/missing", 0), (false, "nothing".to_owned()));
}

#[test]
fn a_refused_name_is_refused_while_the_root_is_not_in_memory() {
    let scratch = Scratch::new();
    for (release, content) in [("one", "1"), ("two", "2")] {
        scratch.file(&format!("{release}/.env"), "secret");
        scratch.file(&format!("{release}/a.txt"), content);
    }
    let current = scratch.link("one", "current");
    let root = Root::open(&current, RootOptions::default()).unwrap();
    assert_eq!(look(&root, "/a.txt", 0), "file 1");
    std::fs::remove_file(&current).unwrap();
    scratch.link("two", "current");
    for (path, expected) in
        [("/.env", "dot_file"), ("/../one/.env", "path_traversal"), ("/a.txt\0", "nothing")]
    {
        assert_eq!(look_elsewhere(&root, path, 1000), (false, expected.to_owned()), "{path:?}");
    }
    assert_eq!(look_elsewhere(&root, "/a.txt", 1000), (true, "file 2".to_owned()));
    assert_eq!(look_elsewhere(&root, "/.env", 1000), (false, "dot_file".to_owned()));
}

#[test]
fn requests_for_the_same_cold_file_share_its_bytes() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "content");
    evict(&scratch, "a.txt");
    let root = open(&scratch);
    let cold = || root.lookup_in_memory(b"/a.txt", 0).unwrap_err();
    let (first, second) = (cold(), cold());
    let entries = [first, second].map(|cold| match root.complete(cold.run(), 0) {
        Lookup::File(entry) => entry,
        other => panic!("{other:?}"),
    });
    assert!(Rc::ptr_eq(&entries[0], &entries[1]));
}

#[test]
fn a_link_that_leaves_the_root_is_followed_by_another_thread() {
    let scratch = Scratch::new();
    scratch.file("outside/a.txt", "content");
    scratch.link(scratch.at("outside"), "root/inside");
    let options =
        RootOptions { symlink_targets: vec![scratch.at("outside")], ..RootOptions::default() };
    let root = Root::open(&scratch.at("root"), options).unwrap();
    assert_eq!(look_elsewhere(&root, "/inside/a.txt", 0), (true, "file content".to_owned()));
}
