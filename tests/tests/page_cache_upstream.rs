//! The page cache before another server: the same rules as for PHP, and what it is worth when that
//! server is down.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Request, Response, eventually};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

const CLIENTS: usize = 500;

/// Answers each request with the headers that its query names, and with its number.
struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    asked: AtomicUsize,
    is_down: AtomicBool,
    is_held: Mutex<bool>,
    changed: Condvar,
}

impl Upstream {
    fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if theirs.is_down.load(Ordering::SeqCst) {
                    return;
                }
                let shared = theirs.clone();
                thread::spawn(move || answer(&stream, &shared));
            }
        });
        Upstream { address, shared, thread: Some(thread) }
    }

    /// Closes it for good.
    fn goes_down(&mut self) {
        self.shared.is_down.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        self.thread.take().expect("it goes down once").join().expect("it does not panic");
    }

    fn hold(&self, held: bool) {
        *self.shared.is_held.lock().unwrap() = held;
        self.shared.changed.notify_all();
    }

    fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }
}

fn answer(stream: &TcpStream, shared: &Shared) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let number = shared.asked.fetch_add(1, Ordering::SeqCst) + 1;
    let held = shared.is_held.lock().unwrap();
    drop(shared.changed.wait_while(held, |held| *held).unwrap());
    let target = head.split(' ').nth(1).unwrap_or_default();
    let line = target.split_once('?').map_or("X: 1", |(_, line)| line);
    let body = format!("answer {number}");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n{line}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // A client that goes in the middle is no matter here.
    let _ = (&mut (&*stream)).write_all(answer.as_bytes());
}

fn serving(upstream: &Upstream) -> Configured {
    let tables = format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://{}\"\n\
         [app.site.page_cache]\nmode = \"on\"\nlock_timeout = \"60s\"\n",
        upstream.address
    );
    Configured::serving("page_cache", &tables)
}

fn get(site: &Configured, target: &str) -> Response {
    site.client().send(&Request::get(target))
}

fn cache(site: &Configured, arguments: &[&str]) -> Value {
    let output = site.command("cache", &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[test]
fn upstream_responses_are_cached_by_the_same_rules() {
    let upstream = Upstream::start();
    let site = serving(&upstream);
    for (target, kept) in [
        ("/a?Cache-Control:max-age=60", true),
        ("/b?Cache-Control:private", false),
        ("/c?Set-Cookie:a=b", false),
        ("/silent", true),
    ] {
        let first = get(&site, target).expect(200).text();
        let second = get(&site, target).expect(200);
        assert_eq!(second.text() == first, kept, "{target}: {:#?}", second.headers);
    }
    let personal = Request::get("/silent").header("Cookie", "PHPSESSID=1");
    let personal = site.client().send(&personal).expect(200);
    assert_eq!(personal.header("x-cache"), Some("BYPASS"));
    assert_eq!(personal.header("via"), Some("1.1 outboard"));
}

#[test]
fn stale_responses_replace_a_dead_upstream_until_a_502() {
    let mut upstream = Upstream::start();
    let site = serving(&upstream);
    let lasting = "/a?Cache-Control:max-age=60,stale-if-error=600";
    let strict = "/b?Cache-Control:max-age=60,must-revalidate";
    for target in [lasting, strict] {
        get(&site, target).expect(200);
    }
    upstream.goes_down();
    for target in [lasting, strict] {
        assert_eq!(get(&site, target).expect(200).header("x-cache"), Some("HIT"));
    }
    cache(&site, &["purge", "--all", "--soft"]);
    let stale = get(&site, lasting).expect(200);
    assert_eq!(stale.header("x-cache"), Some("STALE"));
    assert_eq!(stale.text(), "answer 1");
    let refused = get(&site, strict).expect(502);
    assert_eq!(refused.header("x-outboard-reason"), Some("upstream_failed"));
    cache(&site, &["purge", "--all"]);
    get(&site, lasting).expect(502);
}

#[test]
fn five_hundred_clients_at_the_moment_of_expiry_ask_it_once() {
    let upstream = Upstream::start();
    let site = serving(&upstream);
    let target = "/a?Cache-Control:max-age=60,must-revalidate";
    get(&site, target).expect(200);
    cache(&site, &["purge", "--all", "--soft"]);
    upstream.hold(true);
    let mut clients: Vec<Connection> = (0..CLIENTS)
        .map(|_| {
            let mut connection = Connection::open(site.address());
            connection
                .send(&Request::get(target).to_bytes(&site.address().to_string()))
                .expect("the server reads");
            connection
        })
        .collect();
    let waiting = || cache(&site, &["stats"])["apps"]["site"]["waiting"].as_u64();
    eventually("all but one wait", || waiting() == Some(CLIENTS as u64 - 1));
    upstream.hold(false);
    for client in &mut clients {
        assert_eq!(client.response().unwrap().expect(200).text(), "answer 2");
    }
    assert_eq!(upstream.asked(), 2);
}

#[test]
fn a_stale_response_is_refreshed_in_the_background() {
    let upstream = Upstream::start();
    let site = serving(&upstream);
    let target = "/a?Cache-Control:max-age=60,stale-while-revalidate=60";
    get(&site, target).expect(200);
    cache(&site, &["purge", "--all", "--soft"]);
    assert_eq!(get(&site, target).expect(200).text(), "answer 1");
    eventually("the new answer", || get(&site, target).expect(200).text() == "answer 2");
    assert_eq!(upstream.asked(), 2);
}
