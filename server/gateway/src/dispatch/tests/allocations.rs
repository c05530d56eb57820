//! Requests in steady state allocate no memory: their buffers are those of earlier requests.
//!
//! The client is at the other end of a socket, PHP at the other end of a worker's ring; both reuse
//! their buffers, so that all counted allocations are those of the gateway.

use crate::testing::{Site, in_loop};
use outboard_http_server::{ListenerContext, Role, serve_socket};
use outboard_php_pool::pool::testing::{StandIn, response_head};
use outboard_reactor::{Peer, Stream, yield_now};
use std::io::IoSlice;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const LOG: &str = "[log.access]\npath = \"access.log\"\n";
/// Requests until all buffers have their size.
const WARM_UP: usize = 200;
const REQUESTS: usize = 1_000;
/// What happens once a second instead of once per request, such as a look whether a file has changed:
/// about twenty allocations, for as many seconds as a loaded machine takes.
const MAX_OTHERS: u64 = 200;
/// From then on, a file cannot change without a new timestamp.
const SETTLED: Duration = Duration::from_millis(40);

const GET: &str = "GET PATH HTTP/1.1\r\nHost: example.test\r\nUser-Agent: Mozilla/5.0 (X11)\r\n\
    Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\nConnection: keep-alive\r\n\r\n";

/// A client with one connection.
struct Client {
    stream: Stream,
    request: String,
    response: Vec<u8>,
}

impl Client {
    /// A client that requests one path.
    fn of(site: &Site, path: &str) -> Self {
        let (client, server) = UnixStream::pair().unwrap();
        let stream = |end: UnixStream| {
            end.set_nonblocking(true).unwrap();
            Stream::new(end.into()).unwrap()
        };
        let peer = Peer::Tcp("192.0.2.1:50000".parse().unwrap());
        serve_socket(&site.gateway, ListenerContext::plain(Role::Apps), stream(server), peer);
        let request = GET.replace("PATH", path);
        Self { stream: stream(client), request, response: Vec::with_capacity(64 << 10) }
    }

    /// Sends a request and receives its response, while PHP does its work.
    async fn exchange(&mut self, mut php: impl FnMut()) {
        let request = &mut [IoSlice::new(self.request.as_bytes())];
        self.stream.write_all(request).await.unwrap();
        self.response.clear();
        while !is_complete(&self.response) {
            php();
            yield_now().await;
            self.stream.try_read(&mut self.response).unwrap();
        }
        assert!(self.response.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }

    fn has(&self, text: &str) -> bool {
        memchr::memmem::find(&self.response, text.as_bytes()).is_some()
    }
}

fn is_complete(response: &[u8]) -> bool {
    const LENGTH: &[u8] = b"Content-Length: ";
    let Some(end) = memchr::memmem::find(response, b"\r\n\r\n") else { return false };
    let from = memchr::memmem::find(response, LENGTH).expect("a length") + LENGTH.len();
    let digits = response[from..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    response.len() == end + 4 + length
}

/// Checks that a thousand requests after the first ones allocate next to nothing.
fn check<F>(serve: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let count = |requests| allocation_counter::measure(|| in_loop(serve(requests))).count_total;
    // What is initialised once per process.
    count(1);
    let first = count(WARM_UP);
    let count = count(WARM_UP + REQUESTS).saturating_sub(first);
    println!("{count} allocations per {REQUESTS} requests");
    assert!(count <= MAX_OTHERS, "{count} allocations per {REQUESTS} requests");
}

async fn files(requests: usize) {
    let site = Site::new(&[("a.txt", "hello")], LOG);
    let mut client = Client::of(&site, "/a.txt");
    for _ in 0..requests {
        client.exchange(|| {}).await;
    }
    assert!(client.has("\r\n\r\nhello"));
}

/// Ten rules with networks and rates, of which a request has to satisfy six.
async fn files_with_access_rules(requests: usize) {
    let rule = |path: &str| {
        format!(
            "[[app.site.access]]\npath = \"{path}\"\ndeny = [\"10.0.0.0/8\"]\n\
             rate_limit = {{ rate = \"1000000/s\", key = \"cookie:sid\", clients = 64 }}\n"
        )
    };
    let rules: String =
        ["/", "/a.txt", "*.txt", "/**", "*", "/b/", "/c", "/d", "/e"].map(rule).concat();
    let rules = format!("[[app.site.access]]\nallow = [\"192.0.2.0/24\"]\n{rules}{LOG}");
    let site = Site::new(&[("a.txt", "hello")], &rules);
    let mut client = Client::of(&site, "/a.txt");
    for _ in 0..requests {
        client.exchange(|| {}).await;
    }
    assert!(client.has("\r\n\r\nhello"));
}

/// A file that is kept compressed; one that has just been written would be left as it is.
async fn compressed_files(requests: usize) {
    let body = "body {}".repeat(1_000);
    let site = Site::new(&[("a.css", &body)], &format!("compress = true\n{LOG}"));
    let written = Instant::now();
    while written.elapsed() < SETTLED {
        yield_now().await;
    }
    let mut client = Client::of(&site, "/a.css");
    while !client.has("Content-Encoding: br") {
        client.exchange(|| {}).await;
        assert!(written.elapsed().as_secs() < 10, "it stays as it is");
    }
    for _ in 0..requests {
        client.exchange(|| {}).await;
    }
    assert!(client.has("Content-Encoding: br") && !client.has("body {}"));
}

const WORKER: &str = "mode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n";
const CACHE: &str = "[app.site.page_cache]\nmode = \"on\"\n";

/// Requests of a worker, whose response has these header lines.
async fn scripts(requests: usize, keys: &str, path: &str, lines: &[&str], is_cached: bool) {
    let keys = format!("{keys}{LOG}");
    let site = Site::new(&[("worker.php", "<?php"), ("index.php", "<?php")], &keys);
    let pool = site.app().pool();
    let mut worker = StandIn::join(&pool, 1);
    let head = response_head(200, lines);
    let mut client = Client::of(&site, path);
    let mut rendered = 0;
    for _ in 0..requests {
        let php = || rendered += usize::from(worker.respond_to_next(&pool, &head, b"hello"));
        client.exchange(php).await;
    }
    assert!(client.has("\r\n\r\nhello"));
    assert_eq!(rendered, if is_cached { 1 } else { requests });
}

const HTML: &str = "Content-Type: text/html; charset=UTF-8";
const LIFETIME: &str = "Cache-Control: max-age=3600";

async fn workers(requests: usize) {
    scripts(requests, WORKER, "/hello?a=1", &["X-Powered-By: PHP/8.2", HTML], false).await;
}

async fn hits(requests: usize) {
    let keys = format!("{WORKER}{CACHE}");
    scripts(requests, &keys, "/hello?a=1", &[LIFETIME, HTML], true).await;
}

async fn classic_hits(requests: usize) {
    scripts(requests, CACHE, "/index.php?a=1", &[LIFETIME, HTML, "Vary: Accept-Encoding"], true)
        .await;
}

#[test]
fn access_rules_allocate_nothing() {
    check(files_with_access_rules);
}

#[test]
fn a_file_is_served_without_allocations() {
    check(files);
}

#[test]
fn a_compressed_file_is_served_without_allocations() {
    check(compressed_files);
}

#[test]
fn a_request_of_a_worker_is_served_without_allocations() {
    check(workers);
}

#[test]
fn a_cache_hit_is_served_without_allocations() {
    check(hits);
}

#[test]
fn a_cache_hit_in_classic_mode_is_served_without_allocations() {
    check(classic_hits);
}
