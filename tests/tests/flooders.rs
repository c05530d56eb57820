//! Who floods the gateway, from within PHP or from outside, costs another app next to nothing: it is
//! answered all the while, the flooder meets its deadline, the server stops when it is told to.
//!
//! Each test prints a line of figures (`make flooders` shows them as a table).
//! `OUTBOARD_FLOODERS_STRICT=1`, on a quiet machine, holds them to what is promised there.

#![forbid(unsafe_code)]

use outboard_e2e::{Backend, Configured, Connection, Docroot, Request};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// The flooder's app has it.
const DEADLINE: Duration = Duration::from_secs(2);
/// Between two probes: a visitor, not a load.
const PACE: Duration = Duration::from_millis(3);
/// What holds on a machine that is busy with other tests.
const P99: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(3);
/// The app that flooded answers again.
const RECOVERED_WITHIN: Duration = Duration::from_secs(10);
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
/// What holds on a quiet one.
const STRICT_P99: Duration = Duration::from_millis(20);
const STRICT_LATE: Duration = Duration::from_millis(100);
const MOST_RSS: u64 = 256 << 20;

/// A server with the app that floods, which answers to any name but one, and the other app.
fn serving(site: &str) -> Configured {
    let docroot = Docroot::of("flooders");
    docroot.writable("var");
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndrain_timeout = \"1s\"\n\
         [log.access]\npath = \"off\"\n[log.error]\npath = \"error.log\"\n[log.slow]\npath = \"off\"\n\
         [limits]\nrequest_deadline = \"{}ms\"\n\
         [kv]\ndata_dir = \"entities\"\n\
         [kv.namespace.flood]\ndurability = \"memory\"\n\
         [app.canary]\nroot = \"www\"\nhosts = [\"canary\"]\n\
         [app.canary.pool]\nmin = 2\nmax = 2\n\
         [app.site]\nroot = \"www\"\nkv_namespaces = [\"flood\"]\n{site}\n",
        DEADLINE.as_millis()
    );
    Configured::start(docroot, &text)
}

fn classic() -> Configured {
    serving("[app.site.pool]\nmin = 2\nmax = 2\nmin_idle = 0\nloopback_slots = 0")
}

fn resident() -> Configured {
    serving(
        "mode = \"worker\"\nworker.script = \"www/worker.php\"\n\
         [app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\nloopback_slots = 0\n\
         [app.site.tasks]\nworkers = 1\nqueue_length = 1000",
    )
}

/// A visitor of the other app.
struct Canary {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Canary {
    fn start(address: SocketAddr) -> Canary {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = spawn(move || {
            let request = Request::get("/hello.php").to_bytes("canary");
            let (mut connection, mut times) = (Connection::open(address), Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                let begun = Instant::now();
                connection.send(&request).expect("the gateway takes requests");
                let response = connection.response().expect("the gateway answers");
                times.push(begun.elapsed());
                response.expect(200).saying("Hello, world\n");
                sleep(PACE);
            }
            times.sort_unstable();
            times
        });
        Canary { stop, thread }
    }

    fn stop(self) -> Vec<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("each probe is answered")
    }
}

/// Has `flood` go on twice: once to its end, which takes as long as it says, and once until the
/// server is stopped.
#[track_caller]
fn is_borne(source: &str, site: Configured, flood: impl Fn(SocketAddr) -> Flood) {
    let address = site.address();
    let canary = Canary::start(address);
    let late = flood(address).late();
    let times = canary.stop();
    let rss = rss_bytes(site.child().pid());
    let p99 = times[times.len() * 99 / 100];
    let most = *times.last().expect("there were probes");
    recovers(&site);

    let again = flood(address);
    let canary = Canary::start(address);
    sleep(DEADLINE / 4);
    canary.stop();
    let told = Instant::now();
    site.child().signal(Signal::TERM);
    site.child().wait();
    let stopped = told.elapsed();
    drop(again);

    println!(
        "{source:<28} {:>6} probes  p50 {:>6.1}  p99 {:>6.1}  most {:>6.1}  late {:>6} ms  \
         stop {:>5} ms  rss {:>3} MiB  log {:>5} KiB",
        times.len(),
        ms(times[times.len() / 2]),
        ms(p99),
        ms(most),
        late.map_or("-".to_owned(), |late| late.as_millis().to_string()),
        stopped.as_millis(),
        rss >> 20,
        log_bytes(&site) >> 10,
    );
    let strict = std::env::var_os("OUTBOARD_FLOODERS_STRICT").is_some();
    let (most_p99, most_late) = if strict { (STRICT_P99, STRICT_LATE) } else { (P99, LATE) };
    assert!(p99 <= most_p99, "{source}: p99 of the other app is {p99:?}");
    assert!(late.is_none_or(|late| late <= most_late), "{source}: {late:?} after its deadline");
    assert!(stopped <= STOPPED_WITHIN, "{source}: {stopped:?} to stop");
    assert!(rss <= MOST_RSS, "{source}: {rss} bytes resident");
    assert!(log_bytes(&site) <= 32 << 20, "{source}: the log has {} bytes", log_bytes(&site));
}

/// What lies in the queue when a flood ends is worked off first.
#[track_caller]
fn recovers(site: &Configured) {
    let begun = Instant::now();
    loop {
        let answer = site.client().get("/hello.php");
        if answer.status != 503 || begun.elapsed() > RECOVERED_WITHIN {
            answer.expect(200).saying("Hello, world\n");
            return;
        }
        sleep(PACE);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn log_bytes(site: &Configured) -> u64 {
    let path = site.docroot().beside().path().join("error.log");
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn rss_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("proc(5)");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Threads that flood.
struct Flood(Vec<JoinHandle<Option<Duration>>>);

impl Flood {
    /// How long after its deadline the last request was answered, once all are over.
    fn late(self) -> Option<Duration> {
        self.0.into_iter().filter_map(|thread| thread.join().expect("it floods")).max()
    }

    /// Requests of scripts that never end by themselves.
    fn of_requests(address: SocketAddr, targets: &[&str]) -> Flood {
        let ask = |target: &&str| {
            let request = Request::get(target).to_bytes("site");
            spawn(move || {
                let begun = Instant::now();
                // The server may stop meanwhile.
                let mut stream = reach(address)?;
                stream.write_all(&request).ok()?;
                let mut head = [0; 12];
                stream.read_exact(&mut head).ok()?;
                let status = String::from_utf8_lossy(&head[9..]).into_owned();
                // With another reason when the gateway is told to stop.
                assert!(["502", "503", "504"].contains(&status.as_str()), "{status}");
                Some(begun.elapsed().saturating_sub(DEADLINE))
            })
        };
        Flood(targets.iter().map(ask).collect())
    }

    /// Somebody who does the same again and again for as long as a deadline is.
    fn of_clients(count: usize, act: impl Fn() + Send + Sync + 'static) -> Flood {
        let act = Arc::new(act);
        let run = |_| {
            let act = act.clone();
            spawn(move || {
                let until = Instant::now() + DEADLINE;
                while Instant::now() < until {
                    act();
                }
                None
            })
        };
        Flood((0..count).map(run).collect())
    }
}

/// A connection, unless the server has stopped.
fn reach(address: SocketAddr) -> Option<TcpStream> {
    TcpStream::connect(address).ok()
}

/// A request whose answer nobody reads yet.
fn unread(address: SocketAddr, request: &[u8]) -> Option<TcpStream> {
    let mut stream = reach(address)?;
    stream.write_all(request).ok()?;
    Some(stream)
}

#[test]
fn tiny_lines_on_standard_error() {
    is_borne("tiny lines, stderr", classic(), |address| {
        Flood::of_requests(address, &["/print_tiny.php", "/print_tiny.php"])
    });
}

#[test]
fn tiny_lines_on_standard_output() {
    is_borne("tiny lines, stdout", classic(), |address| {
        Flood::of_requests(address, &["/print_tiny.php?to=php://stdout"])
    });
}

#[test]
fn a_child_that_prints() {
    is_borne("yes 1>&2", classic(), |address| Flood::of_requests(address, &["/print_yes.php"]));
}

#[test]
fn error_log_without_end() {
    is_borne("error_log()", classic(), |address| {
        Flood::of_requests(address, &["/error_log.php", "/error_log.php"])
    });
}

#[test]
fn log_frames_of_a_worker_that_stays() {
    is_borne("Outboard\\log()", resident(), |address| Flood::of_requests(address, &["/log"]));
}

#[test]
fn tasks_without_end() {
    is_borne("dispatch()", resident(), |address| Flood::of_requests(address, &["/tasks"]));
}

#[test]
fn fetches_without_end() {
    let backend = Arc::new(Backend::start());
    let target = format!("/fetch?from={}", backend.address());
    is_borne("fetch()", resident(), |address| Flood::of_requests(address, &[&target]));
}

#[test]
fn an_upstream_that_never_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let target = format!("/download?from={}", listener.local_addr().expect("it is bound"));
    spawn(move || {
        for stream in listener.incoming().flatten() {
            spawn(move || endless(stream));
        }
    });
    is_borne("an endless upstream", resident(), |address| Flood::of_requests(address, &[&target]));
}

fn endless(mut stream: TcpStream) {
    let mut head = [0; 4096];
    let _ = stream.read(&mut head);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
    let piece = [b'u'; 64 * 1024];
    while stream.write_all(&piece).is_ok() {}
}

#[test]
fn records_without_end() {
    is_borne("Outboard\\KV", classic(), |address| {
        Flood::of_requests(address, &["/kv.php", "/kv.php"])
    });
}

#[test]
fn purges_without_end() {
    is_borne("cache_purge()", classic(), |address| {
        Flood::of_requests(address, &["/purge.php", "/purge.php"])
    });
}

#[test]
fn early_hints_without_end() {
    is_borne("headers_send()", classic(), |address| {
        Flood::of_clients(2, move || {
            let request = Request::get("/early_hints.php").to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE);
            }
        })
    });
}

/// Reads for so long at most.
fn drain(mut stream: TcpStream, patience: Duration) {
    let until = Instant::now() + patience;
    let mut piece = vec![0; 64 * 1024];
    let _ = stream.set_read_timeout(Some(patience));
    while Instant::now() < until && stream.read(&mut piece).is_ok_and(|count| count > 0) {}
}

#[test]
fn output_that_is_read_as_fast_as_it_comes() {
    is_borne("output, read", classic(), |address| {
        Flood::of_clients(2, move || {
            let request = Request::get("/output.php").to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE);
            }
        })
    });
}

#[test]
fn output_that_nobody_reads() {
    is_borne("output, unread", classic(), |address| {
        Flood::of_clients(2, move || {
            let request = Request::get("/output.php").to_bytes("site");
            let stream = unread(address, &request);
            sleep(DEADLINE);
            drop(stream);
        })
    });
}

#[test]
fn uploads_without_end() {
    is_borne("uploads", classic(), |address| {
        Flood::of_clients(2, move || {
            let head = "POST /hello.php HTTP/1.1\r\nHost: site\r\nContent-Length: 10000000\r\n\r\n";
            let Some(mut stream) = unread(address, head.as_bytes()) else { return };
            let piece = [b'u'; 64 * 1024];
            while stream.write_all(&piece).is_ok() {}
        })
    });
}

#[test]
fn more_requests_than_wait() {
    let pool = "[app.site.pool]\nmin = 1\nmax = 1\nqueue_length = 20\nloopback_slots = 0";
    is_borne("a full queue", serving(pool), |address| {
        Flood::of_clients(40, move || {
            let request = Request::get("/busy.php").to_bytes("site");
            if let Some(mut stream) = unread(address, &request) {
                let _ = stream.read(&mut [0; 512]);
            }
        })
    });
}

#[test]
fn connections_without_end() {
    is_borne("connections", classic(), |address| {
        Flood::of_clients(2, move || drop(reach(address)))
    });
}

#[test]
fn http2_frames_without_end() {
    is_borne("HTTP/2 SETTINGS, PING", classic(), |address| {
        Flood::of_clients(4, move || {
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
            let Some(mut stream) = unread(address, preface) else { return };
            let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
            let mut ping = vec![0, 0, 8, 6, 0, 0, 0, 0, 0];
            ping.extend_from_slice(b"12345678");
            let piece = [&settings[..], &ping].concat().repeat(500);
            let _ = stream.write_all(&settings);
            while stream.write_all(&piece).is_ok() {}
        })
    });
}

#[test]
fn pipelined_requests_without_end() {
    is_borne("pipelined requests", classic(), |address| {
        Flood::of_clients(2, move || {
            let requests = "GET /hello.php HTTP/1.1\r\nHost: site\r\n\r\n".repeat(200);
            drop(unread(address, requests.as_bytes()));
        })
    });
}

/// What the log has of a flood is some of its lines and how many there were.
#[test]
fn lines_beyond_the_limit_are_counted_in_the_log() {
    let site = serving(
        "[app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\nloopback_slots = 0\n\
         [app.site.log.error]\npath = \"site.log\"\nlines_per_second = 50",
    );
    for target in ["/print_tiny.php", "/error_log.php"] {
        Flood::of_requests(site.address(), &[target]).late();
        let path = site.docroot().beside().path().join("site.log");
        let begun = Instant::now();
        let text = loop {
            let text = std::fs::read_to_string(&path).expect("it has a log");
            if text.lines().any(|line| line.contains("lines_per_second = 50")) {
                break text;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
            sleep(PACE);
        };
        assert!(text.lines().count() < 2_000, "{} lines", text.lines().count());
        std::fs::write(&path, "").expect("it is ours");
    }
}
