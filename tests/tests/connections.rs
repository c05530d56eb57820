//! Clients with many connections leave room for others: idle ones are closed for new ones, an address
//! and HTTP/2 have limits of their own, and a half-closed client is answered.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Certificate, Configured, Connection, Docroot, Fifo, Request, eventually, read_to_any_end,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HELLO: &[u8] = b"GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(60);
const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// A connection from this address of the loopback network.
fn open(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    open_from(SocketAddr::from((from, 0)), to).expect("a port is free")
}

/// The same; `None` if the port is taken.
fn open_from(from: SocketAddr, to: SocketAddr) -> Option<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &from).ok()?;
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(stream)
}

/// Asks on a connection of its own; how long that took.
#[track_caller]
fn is_served(from: Ipv4Addr, to: SocketAddr) -> Duration {
    let began = Instant::now();
    let mut stream = open(from, to);
    stream.write_all(HELLO).unwrap();
    let mut answer = vec![0; 4096];
    let count = stream.read(&mut answer).unwrap();
    assert!(answer[..count].starts_with(b"HTTP/1.1 200 OK\r\n"), "{:?}", &answer[..count]);
    began.elapsed()
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// Waits until `outboard status` counts so many of something, or fewer.
#[track_caller]
fn until_at_most(site: &Configured, what: &str, most: u64) {
    eventually(&format!("at most {most} {what}"), || {
        let status = site.status();
        if status[what].as_u64().is_some_and(|count| count <= most) { Ok(()) } else { Err(status) }
    });
}

#[test]
fn a_client_that_closes_its_side_is_answered_every_time() {
    let site = Configured::serving("limits", "");
    for round in 0..20 {
        for target in ["/hello.php", "/echo.php", "/large.php"] {
            let mut wire = site.wire();
            wire.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
            wire.finish_sending();
            let answer = wire.to_end();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{round} {target}: {answer}");
        }
    }
}

#[test]
fn a_client_that_closes_its_side_waits_for_a_worker_like_others() {
    let site =
        Configured::serving("supervision", "[app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0");
    let held = site.hold();
    let mut wire = site.wire();
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    wire.finish_sending();
    eventually("the request waits", || site.status()["pools"][0]["queue_length"] == 1);
    held.finishes();
    assert!(wire.to_end().starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn abort_on_close_drops_a_client_that_closes_its_side() {
    let site = Configured::serving(
        "supervision",
        "[limits]\nabort_on_close = true\n[app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0",
    );
    let held = site.hold();
    let mut wire = site.wire();
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    wire.finish_sending();
    assert_eq!(wire.to_end(), "");
    held.finishes();
}

/// A client that has closed its side and takes the answer slowly keeps nobody else waiting.
#[test]
fn a_half_closed_slow_reader_delays_no_other_client() {
    let site = Configured::serving("limits", "");
    let file = std::fs::File::create(site.root().join("large.bin")).unwrap();
    file.set_len(64 << 20).unwrap();
    let mut slow = open(ONE, site.address());
    slow.write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    slow.shutdown(Shutdown::Write).unwrap();
    let mut piece = vec![0; 1 << 20];
    for _ in 0..16 {
        slow.read_exact(&mut piece).unwrap();
        is_served(ONE, site.address());
    }
    // It gets all of it.
    let mut left = 0;
    while let Ok(count @ 1..) = slow.read(&mut piece) {
        left += count;
    }
    assert!(left > 47 << 20, "{left}");
}

#[test]
fn a_full_server_closes_the_longest_idle_connections() {
    let site = Configured::serving("limits", "[limits]\nconnections = 16\nidle_timeout = \"10m\"");
    for beginning in [&b""[..], b"GET / HTT", HELLO] {
        let mut waiting: Vec<TcpStream> = Vec::new();
        for _ in 0..40 {
            let mut stream = open(ONE, site.address());
            // It may have been closed already.
            let _ = stream.write_all(beginning);
            waiting.push(stream);
        }
        for _ in 0..5 {
            is_served(OTHER, site.address());
        }
        // The first have gone, without an answer to what they have not asked.
        let came = read_to_any_end(&mut waiting[0]);
        assert_eq!(came.is_empty(), beginning != HELLO, "{}", String::from_utf8_lossy(&came));
        assert!(site.status()["connections"].as_u64() <= Some(17), "{:#}", site.status());
    }
}

#[test]
fn a_busy_connection_is_not_closed_for_another() {
    let site = Configured::serving(
        "supervision",
        "[limits]\nconnections = 2\n[app.site.pool]\nmin = 2\nmax = 2\nmin_idle = 0",
    );
    let (first, second) = (site.hold(), site.hold());
    let mut waiting = open(ONE, site.address());
    waiting.write_all(HELLO).unwrap();
    first.finishes();
    let mut answer = [0; 15];
    waiting.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    second.finishes();
}

/// Posts half of a body: such a connection is not idle.
fn half_a_post(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let mut stream = open(from, to);
    let half = b"POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello";
    stream.write_all(half).unwrap();
    stream
}

#[test]
fn an_address_has_so_many_connections_and_no_more() {
    let site = Configured::serving("limits", "[limits]\nconnections_per_ip = 4");
    let mut busy: Vec<TcpStream> = (0..4).map(|_| half_a_post(OTHER, site.address())).collect();
    let accepted = |count: u64| site.status()["accepted"].as_u64() >= Some(count);
    eventually("4 connections are accepted", || accepted(4));
    assert_eq!(read_to_any_end(&mut open(OTHER, site.address())), b"");
    site.logs(&["reason=too_many_connections", "127.0.0.9"]);
    is_served(ONE, site.address());
    // Those that were there are served on, and once they only wait they make room.
    for stream in &mut busy {
        stream.write_all(b"world").unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }
    for _ in 0..8 {
        is_served(OTHER, site.address());
    }
}

#[test]
fn a_trusted_proxy_has_as_many_connections_as_it_wants() {
    let text = Configured::text("[limits]\nconnections_per_ip = 2");
    let text = format!("trusted_proxies = [\"127.0.0.9\"]\n{text}");
    let site = Configured::start(Docroot::of("limits"), &text);
    let _busy: Vec<TcpStream> = (0..6).map(|_| half_a_post(OTHER, site.address())).collect();
    is_served(OTHER, site.address());
}

/// A client of HTTP/2 that asks for the same page on many streams and takes nothing.
struct Stalled(Child);

impl Stalled {
    fn asks(port: u16, streams: u32) -> Stalled {
        let child = Command::new("openssl")
            .args(["s_client", "-quiet", "-alpn", "h2", "-servername", "one.test", "-connect"])
            .arg(format!("127.0.0.1:{port}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is there");
        // The preface; SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 6.5.2).
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
        // RFC 7541 Appendix A: GET, https; a path and an authority that are written out.
        let mut head = vec![0x82, 0x87, 0x04, 10];
        head.extend(b"/large.txt");
        head.extend([0x41, 8]);
        head.extend(b"one.test");
        for number in 0..streams {
            bytes.extend(frame(1, 5, 2 * number + 1, &head));
        }
        let mut stalled = Stalled(child);
        stalled.0.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
        stalled
    }

    /// Reads up to a frame of this kind; its payload.
    fn frame(&mut self, wanted: u8) -> Vec<u8> {
        let stdout = self.0.stdout.as_mut().unwrap();
        loop {
            let mut head = [0; 9];
            stdout.read_exact(&mut head).expect("the connection stays open");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            stdout.read_exact(&mut payload).unwrap();
            if head[3] == wanted {
                return payload;
            }
        }
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn with_tls(tables: &str) -> (Configured, u16) {
    let docroot = Docroot::of("limits");
    std::fs::write(docroot.path().join("large.txt"), vec![b'x'; 1 << 20]).unwrap();
    Certificate::make(docroot.beside().path(), "one", "DNS:one.test");
    let tls = "tls = [{ certificate = \"one.pem\", key = \"one.key\" }]";
    let listen = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}\n"
    );
    let text = Configured::text(tables);
    let rest = text.split_once('\n').expect("the line with `listen`").1;
    let site = Configured::start(docroot, &format!("{rest}{listen}"));
    let port = site.listeners()[1].trim_end_matches('/').rsplit(':').next().unwrap();
    let port = port.parse().unwrap();
    (site, port)
}

const RST_STREAM: u8 = 3;
/// RFC 9113 7.
const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

#[test]
fn http2_streams_have_a_limit_apart_from_connections() {
    let (site, port) = with_tls("[limits]\nconnections = 8\nhttp2_streams = 20");
    let mut stalled = Stalled::asks(port, 30);
    assert_eq!(stalled.frame(RST_STREAM), REFUSED_STREAM);
    for _ in 0..5 {
        is_served(ONE, site.address());
    }
    assert_eq!(site.status()["streams"], 20);
    drop(stalled);
    until_at_most(&site, "streams", 0);
}

#[test]
fn streams_count_for_their_address() {
    let (site, port) = with_tls("[limits]\nconnections_per_ip = 8");
    let mut stalled = Stalled::asks(port, 30);
    assert_eq!(stalled.frame(RST_STREAM), REFUSED_STREAM);
    is_served(OTHER, site.address());
    assert!(site.status()["streams"].as_u64() < Some(8));
}

/// The script goes on until its output cannot be sent, and ends then.
#[test]
fn a_script_learns_that_its_client_was_reset() {
    let docroot = Docroot::of("fidelity");
    let site = Configured::start(docroot, &Configured::text(""));
    let folder = site.docroot().beside().path().to_owned();
    let (mut gate, mut done) = (Fifo::at(folder.join("gate")), Fifo::at(folder.join("done")));
    let target =
        format!("/abort_obeyed.php?gate={}&done={}", gate.path().display(), done.path().display());
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get(&target).to_bytes("a")).unwrap();
    connection.head().unwrap().expect(200);
    assert_eq!(connection.chunk().unwrap().as_deref(), Some(b"started\n".as_slice()));
    drop(connection);
    gate.open();
    assert_eq!(done.hear(), r#"{"end reached":false,"aborted":1,"status":1}"#);
}

#[test]
#[ignore = "16,500 sockets, and times that want a quiet machine"]
fn silent_sockets_of_one_address_delay_no_other_client() {
    let site = Configured::serving("limits", "");
    // Below those that the kernel gives out: it looks through all of one half of them for each
    // socket once these are taken, which takes 14 ms.
    let ports = 10_000..26_800;
    let opened =
        ports.filter_map(|port| open_from(SocketAddr::from((OTHER, port)), site.address()));
    let silent: Vec<TcpStream> = opened.take(16_500).collect();
    assert_eq!(silent.len(), 16_500);
    is_served(ONE, site.address());
    let times = (0..1000).map(|_| is_served(ONE, site.address())).collect();
    let p99 = p99(times);
    println!("16,500 silent sockets: p99 {p99:?}, {} open", site.status()["connections"]);
    assert!(p99 <= Duration::from_millis(50), "{p99:?}");
}

#[test]
#[ignore = "128 processes, and times that want a quiet machine"]
fn stalled_http2_connections_delay_no_other_client() {
    let (site, port) = with_tls("");
    let mut stalled: Vec<Stalled> = (0..128).map(|_| Stalled::asks(port, 128)).collect();
    for one in &mut stalled[..20] {
        // The settings: they are all there.
        one.frame(4);
    }
    is_served(OTHER, site.address());
    let times = (0..1000).map(|_| is_served(OTHER, site.address())).collect();
    let p99 = p99(times);
    println!("128 × 128 stalled streams: p99 {p99:?}, {} streams", site.status()["streams"]);
    assert!(p99 <= Duration::from_millis(50), "{p99:?}");
}
