//! A request that is like those before it makes the gateway allocate nothing.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Launch, Request, Scratch, Server};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Requests before counting: buffers have grown, and caches are filled.
const WARM_UP: usize = 1_000;
const REQUESTS: usize = 5_000;
/// What the gateway may allocate beside requests meanwhile, by its clocks.
const BESIDE: u64 = 250;

const WORKER: &str = "mode = \"worker\"\nworker.script = \"www/worker.php\"\n";
/// No collector: nothing is exported.
const TRACES: &str = "[tracing]\nendpoint = \"http://127.0.0.1:1\"\nsample = \"0%\"\n";
const CACHE: &str = "page_cache = \"on\"\n";

/// Compiles the library that counts.
fn counter(scratch: &Scratch) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/allocations/counter.c");
    let library = scratch.path().join("counter.so");
    let compiled = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-pthread", "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.expect("a C compiler").success());
    library
}

/// Requests a page over one connection, and returns how often the gateway has allocated for these.
fn allocations(app: &str, path: &str) -> u64 {
    let docroot = Docroot::of("allocations");
    let (library, counts) = (counter(docroot.beside()), docroot.beside().path().join("count"));
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
         [app.site]\nroot = \"www\"\n{app}[pool]\nmin = 1\nmax = 1\n"
    );
    let program = Launch::new(&Server::binary().to_string_lossy())
        .env("LD_PRELOAD", library)
        .env("ALLOCATION_COUNT", &counts);
    let site = Configured::launched(program, docroot, &text);
    let mut connection = Connection::open(site.address());
    let mut request = |count: usize| {
        for _ in 0..count {
            connection.send(&Request::get(path).to_bytes("a")).unwrap();
            assert_eq!(connection.response().unwrap().status, 200);
        }
        let bytes = std::fs::read(&counts).unwrap();
        u64::from_ne_bytes(bytes.try_into().unwrap())
    };
    let before = request(WARM_UP);
    assert!(before > 0, "the start of the gateway is counted");
    request(REQUESTS) - before
}

#[track_caller]
fn allocates_nothing(app: &str, path: &str) {
    let count = allocations(app, path);
    assert!(count <= BESIDE, "{count} allocations for {REQUESTS} requests of {path}");
}

#[test]
fn a_request_to_a_worker_script_allocates_nothing() {
    allocates_nothing(WORKER, "/");
}

#[test]
fn a_classic_request_allocates_nothing() {
    allocates_nothing("", "/hello.php");
}

#[test]
fn a_traced_request_that_is_not_exported_allocates_nothing() {
    allocates_nothing(&format!("{WORKER}{TRACES}"), "/");
    allocates_nothing(&format!("{TRACES}errors = false\nslow = \"0\"\n"), "/hello.php");
}

#[test]
fn a_hit_of_the_page_cache_allocates_nothing() {
    allocates_nothing(CACHE, "/page.php");
}

#[test]
fn a_file_allocates_nothing() {
    allocates_nothing("", "/file.txt");
}
