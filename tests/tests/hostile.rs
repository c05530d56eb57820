//! An app whose PHP host is hostile: whatever it writes into its ring, its doorbells and its control
//! socket, the gateway goes on and other apps are answered.
//!
//! Five seconds of it; `OUTBOARD_HOSTILE_SECONDS=3600` (`make hostile`) for an hour. The seed is
//! printed, `OUTBOARD_HOSTILE_SEED` repeats one.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Request, repeating};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn serving(seed: u64) -> Configured {
    let docroot = Docroot::of("flooders");
    let begin = docroot.path().join("begin");
    // Its zygote forks no others.
    let text = format!(
        "listen = \"127.0.0.1:0\"\nthreads = 1\ndrain_timeout = \"1s\"\n\
         [log.access]\npath = \"off\"\n[log.error]\nlines_per_second = 20\n[log.slow]\npath = \"off\"\n\
         [app.canary]\nroot = \"www\"\nhosts = [\"canary\"]\n\
         [app.canary.pool]\nmin = 2\nmax = 2\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\nworker.script = \"www/worker.php\"\n\
         [app.site.php]\nhost_binary = {host:?}\n\
         env = {{ HOSTILE_SEED = \"{seed}\", HOSTILE_BEGIN = {begin:?} }}\n\
         [app.site.pool]\nmin = 4\nmax = 4\nstart_timeout = \"2s\"\nqueue_timeout = \"500ms\"\n\
         [app.site.limits]\nrequest_deadline = \"500ms\"\n\
         [app.site.page_cache]\nmode = \"on\"\n\
         [app.site.tasks]\nworkers = 1\nqueue_length = 100\n",
        host = env!("CARGO_BIN_EXE_hostile_host"),
    );
    let site = Configured::start(docroot, &text);
    // A server does not start if an app does not, which a hostile one may choose.
    site.docroot().put("begin", "");
    site
}

/// Sends requests to the hostile app, which need not respond.
fn ask(address: SocketAddr) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let request = Request::get("/hello.php").to_bytes("site");
    for _ in 0..20 {
        let mut answer = [0; 4096];
        if stream.write_all(&request).is_err() || !stream.read(&mut answer).is_ok_and(|len| len > 0)
        {
            return;
        }
    }
}

#[test]
fn a_hostile_host_costs_its_own_app_and_nothing_else() {
    let time = Duration::from_secs(variable("OUTBOARD_HOSTILE_SECONDS").unwrap_or(5));
    let seed = variable("OUTBOARD_HOSTILE_SEED").unwrap_or_else(|| std::process::id().into());
    println!("OUTBOARD_HOSTILE_SEED={seed}");
    let site = serving(seed);
    let address = site.address();
    let until = Instant::now() + time;
    let mut times = Vec::new();
    let client = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            ask(address);
        }
    };
    repeating(4, client, || {
        let request = Request::get("/hello.php").to_bytes("canary");
        let mut connection = Connection::open(address);
        while Instant::now() < until {
            let begun = Instant::now();
            connection.send(&request).expect("the gateway takes requests");
            let response = connection.response().expect("the gateway answers");
            response.expect(200).saying("Hello, world\n");
            times.push(begun.elapsed());
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let status = site.status();
    let crashes: u64 =
        status["pools"].as_array().into_iter().flatten().filter_map(|p| p["forks"].as_u64()).sum();
    times.sort_unstable();
    println!(
        "{} probes, p99 {:?}, most {:?}; {crashes} workers forked",
        times.len(),
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
    let output = site.child().output();
    let is_own = |line: &str| line.contains("panicked at ") && !line.contains("panicked at tests/");
    assert!(!output.lines().any(is_own), "{output}");
    assert!(times[times.len() - 1] < Duration::from_secs(10), "the gateway hung");
    site.child().signal(Signal::TERM);
    site.child().wait();
}
