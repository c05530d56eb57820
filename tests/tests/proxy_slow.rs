//! Slow clients of a route that another server answers: they hold none of the upstream's places, so
//! that others are served.

#![forbid(unsafe_code)]

use outboard_e2e::{Backend, Configured, eventually};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn serving(backend: &Backend, requests: u32, more: &str) -> Configured {
    let url = backend.url();
    let tables = format!(
        "[upstream]\nrequests = {requests}\nqueue_length = 1024\nqueue_timeout = \"10s\"\n\
         [[app.site.proxy]]\npath = \"/**\"\nupstream = \"{url}\"\n{more}\n"
    );
    Configured::serving("page_cache", &tables)
}

/// A connection whose client holds little of what comes.
fn narrow(to: SocketAddr) -> TcpStream {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    set_socket_recv_buffer_size(&socket, 2048).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks on a connection of its own; how long that took.
#[track_caller]
fn is_served(site: &Configured) -> Duration {
    let began = Instant::now();
    site.client().get("/text/words").expect(200).saying("words");
    began.elapsed()
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

fn slow_bodies(site: &Configured, count: usize) -> Vec<TcpStream> {
    let one = || {
        let mut stream = narrow(site.address());
        let head =
            b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 8\r\n\r\nslow";
        stream.write_all(head).unwrap();
        stream
    };
    (0..count).map(|_| one()).collect()
}

fn slow_readers(site: &Configured, count: usize, bytes: usize) -> Vec<TcpStream> {
    let one = || {
        let mut stream = narrow(site.address());
        let request =
            format!("GET /large/{bytes} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    (0..count).map(|_| one()).collect()
}

/// Waits until no request to the upstream is under way.
#[track_caller]
fn until_all_are_answered(site: &Configured) {
    eventually("no request is under way", || {
        let upstream = site.status()["upstream"].clone();
        if upstream["under_way"] == 0 { Ok(()) } else { Err(upstream) }
    });
}

#[test]
fn a_slow_body_holds_no_place_at_the_upstream() {
    let backend = Backend::start();
    let site = serving(&backend, 2, "");
    let slow = slow_bodies(&site, 16);
    for _ in 0..8 {
        is_served(&site);
    }
    assert!(!backend.heard().contains(&"/echo".to_owned()), "none of them is whole");
    for mut stream in slow {
        stream.write_all(b"body").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\nslowbody"), "{answer}");
    }
}

#[test]
fn a_slow_reader_holds_no_place_at_the_upstream_and_gets_all() {
    const BYTES: usize = 8 << 20;
    let backend = Backend::start();
    let site = serving(&backend, 2, "");
    let slow = slow_readers(&site, 16, BYTES);
    backend.hears(&format!("/large/{BYTES}"), 16);
    until_all_are_answered(&site);
    is_served(&site);
    for mut stream in slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(answer.len() - head, BYTES);
        assert!(answer[head..].iter().all(|&byte| byte == b'x'));
    }
}

/// Without a file, or without room for it, the upstream waits as it would without the gateway.
#[test]
fn an_answer_that_is_not_kept_waits_at_the_upstream() {
    const BYTES: usize = 16 << 20;
    let backend = Backend::start();
    for (more, spool) in [("response_buffering = false", ""), ("", "[io]\nmax_temp_size = 0\n")] {
        let site = serving(&backend, 4, &format!("{more}\n{spool}"));
        let slow = slow_readers(&site, 1, BYTES);
        is_served(&site);
        assert_eq!(site.status()["upstream"]["under_way"], 1);
        for mut stream in slow {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert!(answer.len() > BYTES, "{}", answer.len());
        }
    }
}

/// How long others wait, as often as `more` says so, and a thousand times at least.
fn others(site: &Configured, mut more: impl FnMut() -> bool) -> Vec<Duration> {
    let mut times = Vec::new();
    while times.len() < 1000 || more() {
        times.push(is_served(site));
    }
    times
}

#[test]
#[ignore = "1,024 sockets each, and times that want a quiet machine"]
fn slow_bodies_and_slow_readers_delay_no_other_client() {
    const BYTES: usize = 4 << 20;
    let backend = Backend::start();
    let site = serving(&backend, 1024, "");
    let _bodies = slow_bodies(&site, 1024);
    is_served(&site);
    let beside_bodies = others(&site, || false);
    let began = Instant::now();
    let _readers = slow_readers(&site, 1024, BYTES);
    let while_it_comes =
        others(&site, || began.elapsed() < PATIENCE && site.status()["upstream"]["under_way"] != 0);
    let came = began.elapsed();
    until_all_are_answered(&site);
    let when_it_waits = others(&site, || false);
    let rss_mib = site.child().resident_bytes() >> 20;
    let mut slow = false;
    for (beside, times) in [
        ("1,024 slow bodies".to_owned(), beside_bodies),
        (format!("and 1,024 slow readers, whose 4 GiB come within {came:?}"), while_it_comes),
        (format!("and when all has come; the gateway has {rss_mib} MiB"), when_it_waits),
    ] {
        let (count, longest) = (times.len(), times.iter().max().copied());
        let p99 = p99(times);
        println!("beside {beside}: p99 {p99:?}, {longest:?} at most, of {count}");
        slow |= p99 > Duration::from_millis(100);
    }
    assert!(!slow, "p99 above 100 ms");
}
