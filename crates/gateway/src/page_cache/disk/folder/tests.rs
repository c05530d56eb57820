use super::*;
use outboard_page_cache::{
    BypassRules, CookieRules, ExchangeTimes, Fields, Key, Policy, Request, RequestFacts, Response,
    encoded, storable, tags_of,
};
use std::sync::atomic::AtomicU32;

/// A folder below the machine's own for such, gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-page-cache-disk-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn entry(path: &str) -> Entry {
    let fields = [(&b"Cache-Control"[..], &b"max-age=1000"[..]), (b"Cache-Tag", path.as_bytes())];
    let (policy, guard, nothing) = (Policy::STANDARD, BypassRules::default(), Fields(&[]));
    let request = Request { method: outboard_http1::Method::Get, path: b"/", fields: nothing };
    let facts = RequestFacts::read(request, &guard, &policy).unwrap();
    let response = Response { status: 200, fields: Fields(&fields) };
    let exchanged = ExchangeTimes { request_s: 1, response_s: 1 };
    let rules = CookieRules::default();
    let storable = storable(&policy, &rules, &facts, nothing, response, exchanged).unwrap();
    let tags = tags_of(Fields(&fields));
    let key = Key::new(false, b"a", path.as_bytes());
    Entry::new(key, 200, Fields(&fields), vec![b'x'; 100].into(), storable, tags)
}

fn write(folder: &Folder, file: u64, path: &str) {
    folder.send(Job::Write { file, bytes: encoded(&entry(path)) });
}

/// The thread has done what it was told.
fn settle(folder: Folder) {
    let path = folder.path.clone();
    folder.send(Job::Write { file: u64::MAX, bytes: b"last".to_vec() });
    while !name(&path, u64::MAX).exists() {
        std::thread::yield_now();
    }
}

fn paths(left: &[Left]) -> Vec<String> {
    let text = |entry: &Entry| String::from_utf8_lossy(entry.key().path_and_query()).into_owned();
    left.iter().map(|(_, _, entry)| text(entry)).collect()
}

#[test]
fn what_one_process_leaves_the_next_finds_oldest_first_and_only_whole_files() {
    let scratch = Scratch::new();
    let folder = Folder::open(&scratch.0, true).unwrap();
    let first = folder.first_file();
    for (number, path) in ["/a", "/b", "/c", "/d"].iter().enumerate() {
        write(&folder, first + number as u64, path);
    }
    let at = folder.path.clone();
    settle(folder);
    let cut = fs::read(name(&at, first + 1)).unwrap();
    fs::write(name(&at, first + 1), &cut[..cut.len() - 1]).unwrap();
    fs::write(at.join("1.new"), b"half").unwrap();
    let folder = Folder::open(&scratch.0, true).unwrap();
    assert_eq!(paths(&folder.scan()()), ["/a", "/c", "/d"]);
    assert!(!name(&at, first + 1).exists() && !at.join("1.new").exists());
}

#[test]
fn what_was_purged_is_not_found_again_though_its_file_is_still_there() {
    let scratch = Scratch::new();
    let folder = Folder::open(&scratch.0, true).unwrap();
    let first = folder.first_file();
    write(&folder, first, "/a");
    write(&folder, first + 1, "/b");
    folder.log(&Selector::url(b"/a"));
    settle(folder);
    let folder = Folder::open(&scratch.0, true).unwrap();
    assert_eq!(paths(&folder.scan()()), ["/b"]);
    assert_eq!(fs::metadata(folder.path.join("purges")).unwrap().len(), 0);
}

#[test]
fn a_reload_begins_with_a_folder_of_its_own_and_a_second_server_has_none() {
    let scratch = Scratch::new();
    let folder = Folder::open(&scratch.0, true).unwrap();
    assert!(Folder::open(&scratch.0, true).is_err());
    let after = Folder::open(&scratch.0, false).unwrap();
    assert_ne!(folder.path, after.path);
    assert!(folder.path.exists(), "it is still in use");
}
