//! Who floods the gateway, from within PHP or from outside, costs another app next to nothing: it is
//! answered all the while, the flooder meets its deadline, the server stops when it is ordered to.
//!
//! Each test prints a line of figures (`make flooders` shows them as a table), with the share of a
//! processor that the gateway had. What is lost to the processors being taken, with the gateway next to
//! idle, is in the lines of [`processors`]. `OUTBOARD_FLOODERS_STRICT=1`, on a quiet machine, holds
//! them to what is promised there.

#![forbid(unsafe_code)]

mod abused;
mod clients;
mod files;
mod http2;
mod http3;
mod operators;
mod processors;
mod quic;
mod slow_disk;
mod tasks;
mod tls;
mod upstreams;
mod workers;

use outboard_e2e::{Configured, Connection, Docroot, Request, eventually_within};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
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
    serving_with("listen = \"127.0.0.1:0\"\n", site)
}

/// The same, with these keys of the server's own.
fn serving_with(own: &str, site: &str) -> Configured {
    Configured::start(docroot(), &text(own, site))
}

fn docroot() -> Docroot {
    let docroot = Docroot::of("flooders");
    docroot.writable("var");
    docroot
}

fn text(own: &str, site: &str) -> String {
    format!(
        "{own}drain_timeout = \"1s\"\n\
         [log.access]\npath = \"off\"\n[log.error]\npath = \"error.log\"\n[log.slow]\npath = \"off\"\n\
         [limits]\nrequest_deadline = \"{}ms\"\n\
         [kv]\ndata_dir = \"entities\"\n\
         [kv.namespace.flood]\ndurability = \"memory\"\n\
         [app.canary]\nroot = \"www\"\nhosts = [\"canary\"]\n\
         [app.canary.pool]\nmin = 2\nmax = 2\n\
         [app.site]\nroot = \"www\"\nkv_namespaces = [\"flood\"]\n{site}\n",
        DEADLINE.as_millis()
    )
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
fn is_borne(source: &str, site: Configured, flood: impl Fn(&Configured) -> Flood) {
    let address = site.address();
    let gateway = site.child().pid();
    let canary = Canary::start(address);
    let (begun, before, turns_before) = (Instant::now(), cpu_time(gateway), Turns::of(&site));
    let late = flood(&site).late();
    let busy = (cpu_time(gateway) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let turns = Turns::of(&site) - turns_before;
    let times = canary.stop();
    let rss = rss_bytes(gateway);
    let most = *times.last().expect("there were probes");
    // Of few probes, one that a pause of the machine has met is not the 99th percentile.
    let p99 = times[(times.len() - 1) * 99 / 100];
    recovers(&site);

    let again = flood(&site);
    let canary = Canary::start(address);
    sleep(DEADLINE / 4);
    canary.stop();
    let ordered = Instant::now();
    site.child().signal(Signal::TERM);
    site.child().wait();
    let stopped = ordered.elapsed();
    drop(again);

    println!(
        "{source:<28} {:>6} probes  p50 {:>6.1}  p99 {:>6.1}  most {:>6.1}  late {:>6} ms  \
         gateway {:>3.0} %  turns {:>6}, over 1 ms {:>4}, 5 ms {:>3}, 20 ms {:>2}  stop {:>5} ms  \
         rss {:>3} MiB  log {:>5} KiB",
        times.len(),
        ms(times[times.len() / 2]),
        ms(p99),
        ms(most),
        late.map_or("-".to_owned(), |late| late.as_millis().to_string()),
        busy * 100.0,
        turns.count,
        turns.over_1_ms,
        turns.over_5_ms,
        turns.over_20_ms,
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

/// Turns of the gateway's event loop.
#[derive(Debug, Clone, Copy)]
struct Turns {
    count: u64,
    over_1_ms: u64,
    over_5_ms: u64,
    over_20_ms: u64,
}

impl Turns {
    fn of(site: &Configured) -> Turns {
        let status = site.status();
        let of = |name: &str| status["turns"][name].as_u64().expect(name);
        Turns {
            count: of("count"),
            over_1_ms: of("over_1_ms"),
            over_5_ms: of("over_5_ms"),
            over_20_ms: of("over_20_ms"),
        }
    }
}

impl std::ops::Sub for Turns {
    type Output = Turns;

    fn sub(self, before: Turns) -> Turns {
        Turns {
            count: self.count - before.count,
            over_1_ms: self.over_1_ms - before.over_1_ms,
            over_5_ms: self.over_5_ms - before.over_5_ms,
            over_20_ms: self.over_20_ms - before.over_20_ms,
        }
    }
}

/// What lies in the queue when a flood ends is worked off first.
#[track_caller]
fn recovers(site: &Configured) {
    let response = eventually_within(RECOVERED_WITHIN, "the queue is worked off", || {
        let response = site.client().get("/hello.php");
        if response.status == 503 { Err(response) } else { Ok(response) }
    });
    response.expect(200).saying("Hello, world\n");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn log_bytes(site: &Configured) -> u64 {
    let path = site.docroot().beside().path().join("error.log");
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// What a process has had of the processors.
fn cpu_time(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields = text.rsplit(") ").next().expect("proc(5)");
    let ticks =
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().expect("ticks"));
    // A hundred a second on every architecture.
    ticks.sum::<u32>() * Duration::from_millis(10)
}

fn rss_bytes(pid: u32) -> u64 {
    memory_bytes(pid, "VmRSS:")
}

/// A line of proc(5), `status`.
fn memory_bytes(pid: u32, line: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|text| text.strip_prefix(line)).expect("proc(5)");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Threads that flood.
struct Flood(Vec<JoinHandle<Option<Duration>>>);

impl Flood {
    /// How long after its deadline the last request was answered, once all are over.
    fn late(self) -> Option<Duration> {
        self.0.into_iter().filter_map(|thread| thread.join().expect("it floods")).max()
    }

    /// Both.
    fn and(mut self, other: Flood) -> Flood {
        self.0.extend(other.0);
        self
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
                // With another reason when the gateway is ordered to stop.
                assert!(["502", "503", "504"].contains(&status.as_str()), "{status}");
                Some(begun.elapsed().saturating_sub(DEADLINE))
            })
        };
        Flood(targets.iter().map(ask).collect())
    }

    /// Clients that repeat the same for as long as a deadline is.
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

/// Reads for so long at most.
fn drain(mut stream: TcpStream, patience: Duration) {
    let until = Instant::now() + patience;
    let mut piece = vec![0; 64 * 1024];
    let _ = stream.set_read_timeout(Some(patience));
    while Instant::now() < until && stream.read(&mut piece).is_ok_and(|count| count > 0) {}
}

/// Where the second listener is, which speaks TLS.
fn tls_address(site: &Configured) -> SocketAddr {
    let url = &site.listeners()[1];
    let address = url.trim_start_matches("https://").trim_end_matches('/');
    address.parse().expect("an address")
}

/// Asks the admin socket, unless the server has stopped.
fn ask_admin(socket: &Path, method: &str, target: &str) {
    let Ok(mut stream) = UnixStream::connect(socket) else { return };
    let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_end(&mut Vec::new());
}
