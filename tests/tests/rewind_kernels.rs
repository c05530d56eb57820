//! Rewind where the kernel, or the profile of a container engine, permits less: the next best way is taken,
//! responses stay the same, and `outboard status` says which way it is and what it costs.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Launch, Server, eventually};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const ENOTTY: i32 = 25;
const ENOSYS: i32 = 38;

/// Of userfaultfd(2), pread64(2) and ioctl(2).
#[cfg(target_arch = "x86_64")]
const CALLS: [u32; 3] = [323, 17, 16];
#[cfg(not(target_arch = "x86_64"))]
const CALLS: [u32; 3] = [282, 67, 29];
/// The request of ioctl(2) that scans the page map.
const PAGEMAP_SCAN: u32 = 0xc060_6610;
/// An entry of the page map, which is read alone when the kernel is probed.
const ENTRY_BYTES: u32 = 8;

/// What the kernel refuses, as `forbid.php` takes it.
fn refusals(errors: [Option<i32>; 3]) -> String {
    let [userfaultfd, pread, ioctl] = CALLS;
    let calls = [
        userfaultfd.to_string(),
        format!("{pread}/2={ENTRY_BYTES}"),
        format!("{ioctl}/1={PAGEMAP_SCAN}"),
    ];
    let refused = calls.iter().zip(errors).filter_map(|(call, error)| Some((call, error?)));
    refused.map(|(call, error)| format!("{call}:{error}")).collect::<Vec<_>>().join(",")
}

const REQUESTS: u64 = 40;

/// A server whose kernel refuses these.
fn refusing(refused: &str) -> Configured {
    let forbid = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/rewind_kernels/forbid.php");
    let program = Launch::new("php8.2")
        .args(["-d", "ffi.enable=1"])
        .arg(forbid)
        .arg(refused)
        .arg(Server::binary());
    let text = "listen = \"127.0.0.1:0\"\nthreads = 2\n[log.access]\npath = \"off\"\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\nworker.script = \"www/worker.php\"\n\
         worker.isolation = \"rewind\"\n[app.site.php.env]\nOUTBOARD_VERIFY_REWIND = \"1\"\n\
         [pool]\nmin = 2\nmax = 2\nloopback_slots = 0\n";
    Configured::launched(program, Docroot::of("worker_pool"), text)
}

/// Sends requests, none of which finds anything of another; returns the processes that responded.
fn requests(site: &Configured) -> HashSet<String> {
    let mut processes = HashSet::new();
    for _ in 0..REQUESTS {
        let said = site.client().get("/who").expect(200).text();
        let (process, count) = said.trim().split_once(" answered ").expect("the fixture says so");
        assert_eq!(count, "1");
        processes.insert(process.to_owned());
    }
    processes
}

/// The pool's status, and the command's page.
fn status(site: &Configured) -> (Value, String) {
    let output = site.command("status", &[]);
    let page = String::from_utf8(output.stdout).expect("a page");
    (site.status()["pools"][0].clone(), page)
}

#[track_caller]
fn rewinds_by(site: &Configured, way: &str) {
    let processes = requests(site);
    assert!(processes.len() <= 4, "{processes:?}");
    let rewind = || site.status()["pools"][0]["rewind"].clone();
    eventually("the last request is undone", || rewind()["rewinds"].as_u64() == Some(REQUESTS));
    // Of a rewind, the number and then the time is counted.
    let (pool, page) = eventually("the figures stand still", || {
        let before = rewind();
        Some(status(site)).filter(|(pool, _)| pool["rewind"] == before)
    });
    let rewind = &pool["rewind"];
    assert_eq!(rewind["writes_by"], way, "{pool:#}");
    assert_eq!(pool["rewind_refused"], Value::Null);
    assert!(
        rewind["mean_us"].as_u64() > Some(0) && rewind["mean_pages"].as_u64() > Some(0),
        "{rewind}"
    );
    assert!(page.contains(&format!("worker, rewind by {way}")), "{page}");
    let cost = format!("{} µs and {} pages each", rewind["mean_us"], rewind["mean_pages"]);
    assert!(page.contains(&cost), "{cost} in {page}");
}

#[test]
fn without_userfaultfd_the_page_map_is_read() {
    // As the default profile of Docker refuses it, and as a kernel without it.
    for error in [EPERM, ENOSYS] {
        rewinds_by(&refusing(&refusals([Some(error), None, None])), "page map");
    }
}

#[test]
fn without_a_scan_of_the_page_map_it_is_read() {
    rewinds_by(&refusing(&refusals([None, None, Some(ENOTTY)])), "page map");
}

#[test]
fn without_the_page_map_each_request_has_a_fork() {
    let site = refusing(&refusals([Some(EPERM), Some(EACCES), Some(ENOTTY)]));
    let processes = requests(&site);
    assert!(processes.len() as u64 >= REQUESTS, "{processes:?}");
    let (pool, page) = status(&site);
    assert_eq!((&pool["rewind"], &pool["crashes"]), (&Value::Null, &0.into()), "{pool:#}");
    let why = pool["rewind_refused"].as_str().expect("a reason");
    assert!(why.contains("Permission denied"), "{why}");
    assert!(page.contains("rewind is impossible here: fork"), "{page}");
    assert!(
        page.contains(&format!("no rewind: {why}; a fork for each request is ready after ")),
        "{page}"
    );
    assert!(pool["mean_start_us"].as_u64() > Some(100), "{pool:#}");
    site.logs(&["workers cannot be rewound, so each handles one request", "Permission denied"]);
}
