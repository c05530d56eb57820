//! The page cache on disk: it is there after a restart, and whatever happened, no page is wrong.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Configured, Connection, Docroot, Protocol, Request, Response, Scratch, eventually,
};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// As long as a page takes several writes of the kernel's.
const TIMES: usize = 8_000;

fn serving(disk: &Path) -> Configured {
    let tables = format!(
        "[app.site.page_cache]\nmode = \"on\"\nmax_memory = \"1 MiB\"\ndisk = \"{}\"\nmax_disk = \"64 MiB\"\n",
        disk.display()
    );
    Configured::start(Docroot::of("page_cache"), &Configured::text(&tables))
}

fn target(number: usize) -> String {
    format!("/own.php/page-{number}?times={TIMES}")
}

fn body(number: usize) -> String {
    format!("/page-{number}\n").repeat(TIMES)
}

/// Pages are asked for by one name, whatever port the server has.
fn send(connection: &mut Connection, request: &Request) -> Response {
    connection.send(&request.to_bytes("pages.test")).expect("the server reads");
    connection.response().expect("it answers")
}

fn get(site: &Configured, number: usize) -> Response {
    send(&mut Connection::open(site.address()), &Request::get(&target(number))).expect(200)
}

/// The kept page, if it is there.
fn kept(site: &Configured, number: usize) -> Option<Response> {
    let request = Request::get(&target(number)).header("Cache-Control", "only-if-cached");
    let answer = send(&mut Connection::open(site.address()), &request);
    (answer.status == 200).then_some(answer)
}

fn stats(site: &Configured) -> Value {
    let output = site.command("cache", &["stats", "--json"]);
    serde_json::from_slice::<Value>(&output.stdout).expect("it is JSON")["apps"]["site"].clone()
}

#[track_caller]
fn wait_for_files(site: &Configured, count: u64) {
    eventually("pages are on disk", || stats(site)["disk_entries"].as_u64() >= Some(count));
}

/// How many files of pages there are that have their names.
fn files(disk: &Path) -> usize {
    let folders = std::fs::read_dir(disk.join("site")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
    files.flatten().filter(|file| file.file_name().to_string_lossy().parse::<u64>().is_ok()).count()
}

fn kill(site: &Configured) {
    site.child().signal(Signal::KILL);
    assert_eq!(site.child().wait(), None);
}

#[test]
fn pages_survive_a_kill_and_purged_ones_do_not() {
    let folder = Scratch::new("page-cache");
    let disk = folder.path().join("pages");
    let first = serving(&disk);
    for number in 0..8 {
        get(&first, number);
    }
    eventually("8 files", || files(&disk) == 8);
    let scheme = Protocol::of_run().scheme();
    let page = format!("{scheme}://pages.test/own.php/page-3?times=8000");
    let purged = first.command("cache", &["purge", &page]);
    assert!(purged.status.success(), "{purged:?}");
    kill(&first);
    let second = serving(&disk);
    wait_for_files(&second, 7);
    for number in 0..8 {
        let page = kept(&second, number);
        assert_eq!(page.is_some(), number != 3, "page {number}");
        assert!(page.is_none_or(|page| page.text() == body(number)));
    }
    // A purge of a tag reaches what this process has never had in memory.
    assert!(second.command("cache", &["purge", "--tag", "all"]).status.success());
    kill(&second);
    let third = serving(&disk);
    assert!((0..8).all(|number| kept(&third, number).is_none()));
}

#[test]
fn pages_evicted_from_memory_are_served_from_disk() {
    let folder = Scratch::new("page-cache");
    let site = serving(folder.path());
    for number in 0..100 {
        get(&site, number);
    }
    eventually("100 files", || files(folder.path()) == 100);
    assert!(stats(&site)["evicted"].as_u64() > Some(0));
    for number in 0..100 {
        assert_eq!(kept(&site, number).expect("it is on disk").text(), body(number));
    }
}

#[test]
fn a_reload_begins_with_nothing_on_disk_too() {
    let folder = Scratch::new("page-cache");
    let site = serving(folder.path());
    get(&site, 1);
    eventually("a file", || files(folder.path()) == 1);
    assert!(site.command("reload", &[]).status.success());
    assert!(kept(&site, 1).is_none());
    eventually("no file", || files(folder.path()) == 0);
}

#[test]
fn a_damaged_file_is_not_served() {
    let folder = Scratch::new("page-cache");
    let disk = folder.path().join("pages");
    let first = serving(&disk);
    get(&first, 1);
    eventually("a file", || files(&disk) == 1);
    let generation = std::fs::read_dir(disk.join("site")).unwrap().next().unwrap().unwrap().path();
    let is_page = |path: &std::path::PathBuf| {
        path.file_name().unwrap().to_string_lossy().parse::<u64>().is_ok()
    };
    let page = std::fs::read_dir(generation).unwrap().flatten().map(|entry| entry.path());
    let page = page.into_iter().find(is_page).expect("it was written");
    let mut bytes = std::fs::read(&page).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&page, bytes).unwrap();
    kill(&first);
    let second = serving(&disk);
    eventually("no file", || files(&disk) == 0);
    assert!(kept(&second, 1).is_none());
    assert_eq!(get(&second, 1).text(), body(1));
}

/// Kills the server while it writes, and looks at every page that its successor has.
fn kill_during_writes(rounds: usize) {
    let folder = Scratch::new("page-cache");
    let mut seen = 0;
    for round in 0..rounds {
        let site = serving(folder.path());
        for number in 0..40 {
            if let Some(page) = kept(&site, number) {
                assert!(page.text() == body(number), "round {round}: page {number} is wrong");
                seen += 1;
            }
        }
        assert!(site.command("cache", &["purge", "--tag", "all"]).status.success());
        let mut connection = Connection::open(site.address());
        for number in 0..5 + round * 7 % 31 {
            send(&mut connection, &Request::get(&target(number))).expect(200);
        }
        kill(&site);
    }
    assert!(seen > 0, "nothing survived in {rounds} rounds");
}

#[test]
fn kills_during_writes_leave_no_wrong_page() {
    kill_during_writes(6);
}

#[test]
#[ignore = "a minute and more; the shorter one above is the same"]
fn a_hundred_kills_during_writes_leave_no_wrong_page() {
    kill_during_writes(100);
}

/// A file system of 1 MiB, gone with the test.
struct Small(std::path::PathBuf);

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_once_and_pages_are_kept_in_memory() {
    let scratch = Scratch::new("page-cache-full");
    let at = scratch.path().join("small");
    std::fs::create_dir_all(&at).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m,mode=1777", "tmpfs"]).arg(&at);
    assert!(mount.status().unwrap().success(), "mounting a tmpfs needs root");
    let small = Small(at);
    let site = serving(&small.0);
    let said = "pages cannot be stored on disk, see page_cache.disk: No space left on device";
    // Each takes a tenth of it; the thread that writes tells the one that says it.
    let mut number = 0;
    while !site.child().output().contains(said) {
        assert!(number < 2_000, "{}", site.child().output());
        assert_eq!(get(&site, number).text(), body(number));
        number += 1;
    }
    for more in 0..30 {
        get(&site, number + more);
    }
    assert_eq!(site.child().output().matches(said).count(), 1);
}
