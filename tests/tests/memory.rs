//! What the gateway holds in memory stays bounded, for all clients, and goes back afterwards.
//!
//! Seen from outside: the resident memory of its process, and what `outboard status` says of the
//! accounts. The bars at full size are ignored tests, which print what they measured as the rows of a
//! table: `make memory`.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Certificate, Client, Configured, Docroot, Fifo, Request, Scratch, connect, eventually,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const MIB: u64 = 1 << 20;
/// A page of PHP's that is made in pieces, each of which says where it is.
const PAGE: &str = "<?php for ($at = 0; $at < 1_000_000;) { $lines = ''; \
                    for ($end = $at + 10_000; $at < $end; $at += 10) $lines .= sprintf(\"%09d\\n\", $at); \
                    echo $lines; }";
const PAGE_BYTES: usize = 1_000_000;

struct Site {
    site: Configured,
    start: u64,
}

impl Site {
    /// A site that has answered already, with more tables.
    fn serving(files: &[(&str, &str)], tables: &str) -> Self {
        let docroot = Docroot::of("limits");
        docroot.put("hello.php", "<?php echo 'hello';");
        files.iter().for_each(|(name, content)| docroot.put(name, content));
        let certificate = Certificate::make(docroot.beside().path(), "site", "DNS:localhost");
        let text = format!(
            "listen = [\"127.0.0.1:0\", {{ address = \"127.0.0.1:0\", tls = [{{ certificate = {:?}, \
             key = {:?} }}] }}]\n[log.access]\npath = \"off\"\n[php.ini]\nmemory_limit = \"2G\"\n\
             [app.site]\nroot = \"www\"\n{tables}\n",
            certificate.chain, certificate.key
        );
        let site = Configured::start(docroot, &text);
        for _ in 0..3 {
            assert_eq!(site.client().get("/hello.php").expect(200).text(), "hello");
        }
        let start = resident_bytes(site.child().pid());
        Self { site, start }
    }

    fn resident(&self) -> u64 {
        resident_bytes(self.site.child().pid())
    }

    /// An account's number.
    fn account(&self, kind: &str, name: &str) -> u64 {
        let status = self.site.status();
        let accounts = status["memory"].as_array().unwrap();
        let whole = |account: &&Value| account["kind"] == kind && account["app"].is_null();
        accounts.iter().find(whole).unwrap()[name].as_u64().unwrap()
    }

    /// What is held for more than the connections that are open.
    fn held(&self) -> u64 {
        self.account("all", "held_bytes") - self.account("connections", "held_bytes")
    }

    /// How often a request, a connection or a stream was refused for it.
    fn refusals(&self, reason: &str) -> u64 {
        let status = self.site.status();
        let reasons = status["reasons"].as_array().unwrap().clone();
        let found = reasons.iter().find(|count| count["reason"] == reason);
        found.map_or(0, |count| count["count"].as_u64().unwrap())
    }

    /// Everything goes back, to the system as well.
    #[track_caller]
    fn is_given_back(&self) {
        eventually("nothing being held", || self.held() == 0);
        eventually("memory going back", || self.resident() <= self.start * 3 / 2);
    }

    #[track_caller]
    fn serves(&self) {
        assert_eq!(self.site.client().get("/hello.php").expect(200).text(), "hello");
    }

    /// A client that asks for much and takes nothing of it.
    fn stalled(&self, path: &str) -> TcpStream {
        let mut stream = connect(self.site.address());
        // The kernel would take a page of this length by itself otherwise.
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        stream
    }

    /// A client of HTTP/2 with so many streams of a path, whose windows stay closed.
    fn http2(&self, streams: u32, path: &str) -> Http2 {
        let address = self.site.listeners()[1].trim_start_matches("https://").replace('/', "");
        let mut child = Command::new("openssl")
            .args(["s_client", "-quiet", "-alpn", "h2", "-connect", &address])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 6.5.2).
        frame(&mut bytes, 4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let mut head = Vec::new();
        for (name, value) in
            [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", path)]
        {
            // Literal without indexing, new name (RFC 7541 6.2.2).
            head.push(0);
            for text in [name, value] {
                head.push(text.len() as u8);
                head.extend_from_slice(text.as_bytes());
            }
        }
        // HEADERS with END_STREAM and END_HEADERS.
        (0..streams).for_each(|number| frame(&mut bytes, 1, 5, 2 * number + 1, &head));
        child.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
        Http2(child)
    }
}

/// Ends with its client.
struct Http2(Child);

impl Drop for Http2 {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

fn resident_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Many wait for pages that few workers make.
const PATIENT: &str = "[pool]\nmin = 2\nmax = 2\nqueue_length = 10000\nqueue_timeout = \"60s\"\n\
                       [limits]\nwrite_timeout = \"60s\"\n\
                       connections_per_ip = 0\n";

/// Clients with closed windows on a path; the most that the gateway takes while `is_held` comes about.
fn closed_windows(site: &Site, clients: u32, path: &str, is_held: impl Fn(&Site) -> bool) -> u64 {
    let held: Vec<Http2> = (0..clients).map(|_| site.http2(128, path)).collect();
    eventually("all streams being held", || is_held(site));
    let most = site.resident();
    site.serves();
    drop(held);
    let left = Instant::now();
    site.is_given_back();
    row(&format!("{clients} HTTP/2 connections × 128 streams of {path}"), site, most, left);
    most
}

/// A row of the table: resident memory at the start, at the most, and when it had gone back.
fn row(what: &str, site: &Site, most: u64, left: Instant) {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / MIB as f64);
    println!(
        "| {what} | {} | {} | {} | {} ms |",
        mib(site.start),
        mib(most),
        mib(site.resident()),
        left.elapsed().as_millis()
    );
}

fn pages_behind_closed_windows(clients: u32) {
    let site = Site::serving(&[("page.php", PAGE)], PATIENT);
    let requests = u64::from(clients) * 128 + 3;
    // Those that a worker has finished wait on disk for their clients.
    let is_held = |site: &Site| {
        let status = site.site.status();
        let pool = &status["pools"][0];
        pool["requests"].as_u64() >= Some(requests)
            && pool["queue_length"] == 0
            && pool["in_flight"] == 0
    };
    let most = closed_windows(&site, clients, "/page.php", is_held);
    assert!(most <= 200 * MIB, "{} MiB", most / MIB);
}

fn files_behind_closed_windows(clients: u32) {
    let file = "x".repeat(100_000);
    let site = Site::serving(&[("file.bin", &file)], PATIENT);
    let is_held = |site: &Site| {
        let streams = site.account("http2_streams", "held_bytes") / (12 << 10);
        let refused = site.account("http2_streams", "refused");
        streams + refused >= u64::from(clients) * 128
    };
    let most = closed_windows(&site, clients, "/file.bin", is_held);
    assert!(most <= 200 * MIB, "{} MiB", most / MIB);
}

#[test]
fn stalled_http2_clients_of_pages_take_little_memory() {
    pages_behind_closed_windows(3);
}

#[test]
fn stalled_http2_clients_of_files_take_little_memory() {
    files_behind_closed_windows(16);
}

#[test]
#[ignore = "the bar at full size"]
fn connections_of_pages_stay_below_200_mib() {
    pages_behind_closed_windows(10);
}

#[test]
#[ignore = "the bar at full size"]
fn connections_of_files_stay_below_200_mib() {
    files_behind_closed_windows(127);
}

#[test]
fn streams_beyond_the_memory_are_refused_and_others_are_served() {
    let file = "x".repeat(100_000);
    let tables = format!("{PATIENT}memory = \"16 MiB\"\n");
    let site = Site::serving(&[("file.bin", &file)], &tables);
    let held: Vec<Http2> = (0..8).map(|_| site.http2(128, "/file.bin")).collect();
    eventually("streams being refused", || site.account("http2_streams", "refused") > 0);
    assert!(site.refusals("memory_full") > 0);
    assert_eq!(site.refusals("too_many_connections"), 0);
    assert!(site.account("http2_streams", "peak_bytes") <= 8 * MIB + 2 * MIB);
    site.serves();
    drop(held);
    site.is_given_back();
}

#[test]
fn slow_readers_of_large_pages_take_little_memory_and_no_worker() {
    let site = Site::serving(&[("page.php", PAGE)], PATIENT);
    let readers: Vec<TcpStream> = (0..100).map(|_| site.stalled("/page.php")).collect();
    eventually("all pages being made", || {
        let pool = &site.site.status()["pools"][0];
        pool["requests"].as_u64() >= Some(103) && pool["in_flight"] == 0
    });
    let most = site.resident();
    assert!(most < site.start + 32 * MIB, "{} MiB for 100 pages", (most - site.start) / MIB);
    site.serves();
    let mut answer = Vec::new();
    for mut reader in readers.into_iter().take(1) {
        rustix::net::sockopt::set_socket_recv_buffer_size(&reader, 1 << 20).unwrap();
        reader.read_to_end(&mut answer).unwrap();
    }
    is_page(&answer);
    site.is_given_back();
}

/// The page, whole and in order, in chunks or not.
#[track_caller]
fn is_page(answer: &[u8]) {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let is_chunked = answer[..head].windows(7).any(|word| word == b"chunked");
    let mut rest = &answer[head..];
    let mut body = Vec::new();
    while is_chunked && !rest.is_empty() {
        let line = rest.windows(2).position(|end| end == b"\r\n").unwrap();
        let length = std::str::from_utf8(&rest[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        body.extend_from_slice(&rest[line + 2..][..length]);
        rest = &rest[line + 2 + length + 2..];
    }
    let body = if is_chunked { &body } else { rest };
    assert_eq!(body.len(), PAGE_BYTES);
    for (number, line) in body.chunks(10).enumerate() {
        assert_eq!(line, format!("{:09}\n", number * 10).as_bytes());
    }
}

#[test]
fn slow_clients_get_spooled_pages_whole_in_every_protocol() {
    let site = Site::serving(&[("page.php", PAGE)], PATIENT);
    let https = site.site.listeners()[1].clone();
    let http = format!("http://{}/", site.site.address());
    let scratch = Scratch::new("slow");
    for (number, (url, protocol)) in
        [(&http, "--http1.1"), (&https, "--http1.1"), (&https, "--http2")].into_iter().enumerate()
    {
        let file = scratch.path().join(number.to_string());
        let status = Command::new("curl")
            .args(["-sk", "--max-time", "60", "--limit-rate", "400k", protocol, "-o"])
            .arg(&file)
            .args(["-D", "-", "--raw"])
            .arg(format!("{url}page.php"))
            .output()
            .unwrap();
        assert!(status.status.success(), "{protocol} {url}: {status:?}");
        let answer = [&status.stdout[..], &std::fs::read(&file).unwrap()].concat();
        is_page(&answer);
    }
}

#[test]
fn a_stream_of_events_is_not_kept_back() {
    let events = "<?php header('Content-Type: text/event-stream'); ob_end_flush(); for ($i = 0; $i < 3; $i++) { \
                  echo \"data: $i\\n\\n\"; flush(); while (!file_exists(__DIR__ . \"/go$i\")) usleep(2000); \
                  clearstatcache(); }";
    let site = Site::serving(&[("events.php", events)], "");
    let mut wire = site.site.wire();
    wire.send("GET /events.php HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.head();
    for number in 0..3 {
        wire.expect(&format!("9\r\ndata: {number}\n\n\r\n"));
        site.site.docroot().put(&format!("go{number}"), "");
    }
}

#[test]
fn a_half_closed_client_that_stalls_does_not_delay_others() {
    let file = "x".repeat(20 << 20);
    let site = Site::serving(&[("file.bin", &file), ("page.php", PAGE)], PATIENT);
    let mut held = Vec::new();
    for path in ["/file.bin", "/page.php"] {
        let mut stream = site.stalled(path);
        // It has taken something, so that the gateway has waited for it before.
        stream.read_exact(&mut [0; 64 << 10]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        held.push(stream);
    }
    for _ in 0..20 {
        site.serves();
    }
}

#[test]
fn concurrent_reads_of_a_record_stay_within_a_workers_share() {
    let script = "<?php $kv = new Outboard\\KV(); $kv->put('big', str_repeat('v', 1 << 20)); \
                  try { $ids = array_fill(0, (int) $_GET['n'], 'big'); \
                  array_walk($ids, fn(&$id, $at) => $id = 'big'); \
                  $found = $kv->getMany($ids); echo strlen($found['big']); } \
                  catch (Outboard\\KVException $e) { echo $e->reason; }";
    let tables = "[kv]\ndata_dir = \"entities\"\ndurability = \"memory\"\n";
    let site = Site::serving(&[("kv.php", script)], tables);
    assert_eq!(site.site.client().get("/kv.php?n=20").expect(200).text(), "1048576");
    for _ in 0..3 {
        assert_eq!(site.site.client().get("/kv.php?n=900").expect(200).text(), "overloaded");
    }
    assert!(site.resident() < site.start + 48 * MIB, "{} MiB", site.resident() / MIB);
    assert!(site.account("operations", "refused") >= 3);
    assert!(site.account("operations", "peak_bytes") <= 64 * MIB);
    eventually("operations being over", || site.account("operations", "held_bytes") == 0);
}

/// A worker that has many calls under way, each with a body; it says what came of them.
const CALLER: &str = "<?php while (Outboard\\handle_request(function () { \
    if (!isset($_GET['to'])) { echo 'hello'; return; } \
    $body = str_repeat('b', (int) $_GET['bytes']); \
    $call = function () use ($body) { \
        try { Outboard\\fetch($_GET['to'], ['method' => 'POST', 'body' => $body, 'timeout' => 2]); \
            return 'answered'; } \
        catch (Outboard\\FetchException $e) { return $e->reason; } }; \
    $came = Outboard\\concurrently(array_fill(0, (int) $_GET['calls'], $call)); \
    echo json_encode(array_count_values($came)); })) {}";
const WORKER: &str = "mode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n\
                      concurrency = 1000\n[app.site.pool]\nmin = 1\nmax = 1\n";

#[test]
fn fetches_with_large_bodies_stay_within_a_workers_share() {
    let site = Site::serving(&[("worker.php", CALLER)], WORKER);
    // It listens, and that is all.
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = upstream.local_addr().unwrap();
    let path = format!("/?to=http://{to}/&calls=15&bytes={}", 60 << 20);
    let answer = site.site.client().get(&path).expect(200).text();
    let came: Value = serde_json::from_str(&answer).unwrap();
    assert!(came["busy"].as_u64() >= Some(8) && came["timeout"].as_u64() >= Some(1), "{answer}");
    assert!(site.account("operations", "peak_bytes") <= 64 * MIB);
    let more = site.resident().saturating_sub(site.start);
    assert!(more <= 80 * MIB, "{} MiB", more / MIB);
    site.is_given_back();
}

#[test]
fn thousands_of_failing_calls_leave_no_memory_in_use() {
    let site = Site::serving(&[("worker.php", CALLER)], WORKER);
    let answer = site.site.client().get("/?to=ftp://nowhere/&calls=5000&bytes=0").expect(200);
    assert_eq!(answer.text(), "{\"bad_call\":5000}");
    site.is_given_back();
}

#[test]
fn many_large_uploads_at_once_take_little_memory() {
    let script = "<?php echo strlen(file_get_contents('php://input'));";
    let site = Site::serving(&[("length.php", script)], PATIENT);
    let piece = vec![b'x'; 1 << 20];
    let uploads: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = connect(site.site.address());
            let length = 4 * piece.len();
            write!(
                stream,
                "POST /length.php HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
            )
            .unwrap();
            for _ in 0..3 {
                stream.write_all(&piece).unwrap();
            }
            stream
        })
        .collect();
    assert!(site.resident() < site.start + 48 * MIB, "{} MiB", site.resident() / MIB);
    assert!(site.account("request_bodies", "peak_bytes") <= 64 * (256 << 10) + MIB);
    for mut stream in uploads {
        stream.write_all(&piece).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    site.is_given_back();
}

/// Connections that have asked for something, and ask for nothing more.
fn idle(site: &Site, count: usize) -> Vec<TcpStream> {
    let one = |_| {
        let mut stream = connect(site.site.address());
        stream.write_all(b"GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        assert!(stream.read(&mut answer).unwrap() > 12);
        stream
    };
    (0..count).map(one).collect()
}

/// The same with TLS. Each is a process.
fn idle_with_tls(site: &Site, count: usize) -> Vec<Http2> {
    let address = site.site.listeners()[1].trim_start_matches("https://").replace('/', "");
    let one = |_| {
        let mut child = Command::new("openssl")
            .args(["s_client", "-quiet", "-connect", &address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let request = b"GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        child.stdin.as_mut().unwrap().write_all(request).unwrap();
        assert!(child.stdout.as_mut().unwrap().read(&mut [0; 1024]).unwrap() > 0);
        Http2(child)
    };
    (0..count).map(one).collect()
}

/// Each takes what its account says, which is little; nothing else is held for it.
fn idle_connections(count: usize, with_tls: bool) {
    let site = Site::serving(&[("file.txt", "file")], "[limits]\nconnections_per_ip = 0\n");
    let plain = if with_tls { Vec::new() } else { idle(&site, count) };
    let tls = if with_tls { idle_with_tls(&site, count) } else { Vec::new() };
    eventually("all being idle", || {
        site.site.status()["connections"].as_u64() >= Some(count as u64)
    });
    let counted = site.account("connections", "held_bytes");
    assert_eq!(site.held(), 0);
    site.serves();
    eventually("spare buffers going back", || {
        let more = site.resident().saturating_sub(site.start);
        (more <= counted + 4 * MIB).then_some(()).ok_or_else(|| format!("{more} of {counted}"))
    });
    let most = site.resident();
    let each = most.saturating_sub(site.start) / count as u64;
    let how = if with_tls { "TLS" } else { "plain" };
    drop((plain, tls));
    let left = Instant::now();
    site.is_given_back();
    row(&format!("{count} idle connections, {how}: {each} bytes each"), &site, most, left);
}

#[test]
fn idle_connections_hold_nothing_but_what_is_counted() {
    idle_connections(1_000, false);
    idle_connections(32, true);
}

#[test]
#[ignore = "the bar at full size"]
fn sixteen_thousand_idle_connections_take_what_is_counted() {
    // A connection takes a descriptor here and one there, which sheds before it runs out.
    let limit = Rlimit { current: Some(40_000), maximum: Some(40_000) };
    let _ = setrlimit(Resource::Nofile, limit);
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 3;
    idle_connections(16_000.min(most as usize), false);
    idle_connections(256, true);
}

#[test]
fn new_connections_replace_the_longest_idle_for_want_of_memory() {
    let tables = "[limits]\nmemory = \"16 MiB\"\nconnections_per_ip = 0\n";
    let site = Site::serving(&[("file.txt", "file")], tables);
    let mut idle = idle(&site, 2_300);
    let (held, limit) =
        (site.account("connections", "held_bytes"), site.account("connections", "limit_bytes"));
    assert!(held <= limit + (16 << 10), "{held} of {limit}");
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0, "it has waited longest");
    let last = idle.last_mut().unwrap();
    last.write_all(b"GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(last.read(&mut [0; 1024]).unwrap() > 12);
}

#[test]
fn a_body_beyond_the_spool_is_refused_and_its_space_is_freed() {
    let script = "<?php echo strlen(file_get_contents('php://input'));";
    let tables = "[io]\nmax_temp_size = \"1 MiB\"\n[log.error]\nlevel = \"info\"\n";
    let site = Site::serving(&[("length.php", script)], tables);
    let post = |bytes: usize| {
        let request = Request::post("/length.php", "text/plain", vec![b'x'; bytes]);
        site.site.client().send(&request)
    };
    for _ in 0..3 {
        assert_eq!(post(1 << 20).expect(200).text(), "1048576");
        let refused = post(2 << 20).expect(507);
        assert_eq!(refused.header("x-outboard-reason"), Some("spool_full"));
    }
    assert_eq!(site.refusals("spool_full"), 3);
}

/// An upstream whose answers may be stored, are long, and do not come to an end.
fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8000000\r\n\r\n";
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&vec![b'x'; 4_000_000]);
                // Until the gateway leaves.
                let _ = stream.read(&mut [0]);
            });
        }
    });
    address
}

#[test]
fn scarce_memory_streams_storable_responses() {
    let upstream = endless();
    let tables = format!(
        "[limits]\nmemory = \"16 MiB\"\n[app.site.page_cache]\nmax_body = \"8 MiB\"\n\
         [[app.site.proxy]]\npath = \"/up/**\"\nupstream = \"http://{upstream}\"\ntimeout = \"10s\"\n"
    );
    let site = Site::serving(&[], &tables);
    let clients: Vec<TcpStream> =
        (0..16).map(|number| site.stalled(&format!("/up/{number}"))).collect();
    let is_answered = |client: &&TcpStream| {
        client.set_nonblocking(true).unwrap();
        client.peek(&mut [0]).is_ok_and(|count| count > 0)
    };
    // But for a few, whose beginning is collected.
    eventually("clients being answered", || clients.iter().filter(is_answered).count() >= 12);
    eventually("memory being scarce", || site.account("all", "peak_bytes") > 8 * MIB);
    assert!(site.account("all", "peak_bytes") <= 12 * MIB);
    let more = site.resident().saturating_sub(site.start);
    assert!(more <= 48 * MIB, "{} MiB", more / MIB);
    site.serves();
    // A page that is collected is completed without its client; this upstream never completes it.
    drop(clients);
    site.is_given_back();
}

#[test]
fn parts_beyond_the_memory_are_replaced_by_their_fallback() {
    let backend = Backend::start();
    let url = backend.url();
    let tables = format!(
        "[limits]\nmemory = \"16 MiB\"\n[[app.site.compose]]\npath = \"/page\"\n\
         [[app.site.compose.part]]\nfetch = \"{url}/held/first\"\n\
         [[app.site.compose.part]]\nfetch = \"{url}/large/4000000\"\nfallback = \"instead\"\n"
    );
    let site = Site::serving(&[], &tables);
    let clients: Vec<TcpStream> = (0..12).map(|_| site.stalled("/page")).collect();
    backend.hears("/large/4000000", 12);
    eventually("parts being refused", || site.account("responses", "refused") >= 8);
    assert!(site.account("all", "peak_bytes") <= 16 * MIB);
    let more = site.resident().saturating_sub(site.start);
    assert!(more <= 40 * MIB, "{} MiB", more / MIB);
    backend.release("first");
    let mut replaced = 0;
    for mut client in clients {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        let is_replaced = answer.windows(7).any(|words| words == b"instead");
        assert!(is_replaced || answer.len() > 4_000_000, "{}", answer.len());
        replaced += usize::from(is_replaced);
    }
    assert!(replaced >= 8, "{replaced} of 12");
    site.is_given_back();
}

#[test]
fn pages_of_parts_that_slow_clients_do_not_take_wait_on_disk() {
    // More than the kernel holds of one connection (tcp_rmem and tcp_wmem, tcp(7)).
    const BYTES: usize = 32_000_000;
    let backend = Backend::start();
    let url = backend.url();
    let tables = format!(
        "[[app.site.compose]]\npath = \"/page\"\n[[app.site.compose.part]]\n\
         fetch = \"{url}/large/{BYTES}\"\nmax_body = \"64 MiB\"\ntimeout = \"60s\"\n\
         [[app.site.compose.part]]\ntext = \"the end\"\n"
    );
    let site = Site::serving(&[], &tables);
    let slow: Vec<TcpStream> = (0..4).map(|_| site.stalled("/page")).collect();
    let mut late = connect(site.site.address());
    late.write_all(b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    backend.hears(&format!("/large/{BYTES}"), 5);
    eventually("the parts being there", || {
        site.site.status()["upstream"]["under_way"] == 0 && site.held() <= 5 * (80 << 10)
    });
    let more = site.resident().saturating_sub(site.start);
    assert!(more <= 48 * MIB, "{} MiB", more / MIB);
    let mut answer = Vec::new();
    late.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > BYTES, "{} bytes", answer.len());
    assert!(answer[BYTES..].windows(7).any(|words| words == b"the end"));
    drop((slow, late));
    site.is_given_back();
}

#[test]
fn a_stuck_log_reader_holds_little_memory_and_no_request() {
    let scratch = Scratch::new("stuck");
    // A log that is no regular file has to be where nobody else can replace it.
    std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
    let fifo = Fifo::at(scratch.path().join("access"));
    let tables = format!("[app.site.log.access]\npath = {:?}\n", fifo.path());
    let site = Site::serving(&[("file.txt", "file")], &tables);
    let request = Request::get("/file.txt").header("User-Agent", &"x".repeat(4000));
    let mut client = site.site.client();
    for _ in 0..200 {
        assert_eq!(client.send(&request).expect(200).text(), "file");
    }
    eventually("lines waiting", || site.account("logs", "held_bytes") > 128 << 10);
    assert!(site.account("logs", "held_bytes") <= 272 << 10);
    assert!(site.site.status()["lost_log_lines"].as_u64() > Some(0));
    // A reader that goes on gets what has waited.
    let mut reader = std::fs::File::open(fifo.path()).unwrap();
    let lines = std::thread::spawn(move || {
        let mut piece = vec![0; 1 << 20];
        while !matches!(reader.read(&mut piece), Ok(0) | Err(_)) {}
    });
    eventually("the lines being written", || site.account("logs", "held_bytes") == 0);
    drop((client, site, fifo));
    lines.join().unwrap();
}

#[test]
fn a_record_is_written_whole_however_scarce_memory_is() {
    let tables = "[limits]\nmemory = \"64 MiB\"\n\
                  [kv]\ndata_dir = \"entities\"\nlisten = \"127.0.0.1:0\"\n";
    let site = Site::serving(&[("hello.php", "<?php echo 'hello';")], tables);
    // Each stays in memory.
    let uploads: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = connect(site.site.address());
            let head = "POST /hello.php HTTP/1.1\r\nHost: a\r\nContent-Length: 250000\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&vec![b'x'; 249_000]).unwrap();
            stream
        })
        .collect();
    eventually("the bodies being held", || site.account("request_bodies", "held_bytes") > 9 * MIB);
    // Scarce is more than half: of less, from now on.
    let file = std::fs::read_to_string(site.site.docroot().beside().path().join("outboard.toml"));
    site.site.rewrite(&file.unwrap().replace("memory = \"64 MiB\"", "memory = \"16 MiB\""));
    assert!(site.site.command("reload", &[]).status.success());
    assert_eq!(site.account("all", "limit_bytes"), 16 * MIB);
    let value = vec![b'v'; 100_000];
    let mut client = Client::new(site.site.address_of(2));
    client.send(&Request::new("PUT", "/v0/entity?id=a").body(value.clone())).expect(201);
    let got = client.send(&Request::get("/v0/entity?id=a")).expect(200);
    assert!(got.body == value, "{} bytes", got.body.len());
    drop(uploads);
    site.is_given_back();
}

#[test]
fn the_accounts_are_in_status_and_metrics() {
    let site =
        Site::serving(&[], "[limits]\nmemory = \"64 MiB\"\n[admin]\nmetrics = \"/metrics\"\n");
    assert_eq!(site.account("all", "limit_bytes"), 64 * MIB);
    let output = site.site.command("status", &[]);
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("\nmemory       "), "{page}");
    let metrics = site.site.client().get("/metrics").expect(200).text();
    let line = "outboard_memory_limit_bytes{kind=\"operations\",app=\"site\"} 33554432";
    assert!(metrics.contains(line), "{metrics}");
    for kind in ["connections", "logs", "responses", "request_bodies", "http2_streams"] {
        assert!(metrics.contains(&format!("{{kind=\"{kind}\"")), "{kind}: {metrics}");
    }
}
