//! Calls of a worker that the test plays, to servers in its loop and to a store in memory.

use super::*;
use crate::testing::Directory;
use outboard_log::{ErrorLog, Level, Opener, Sink, Target as LogTarget};
use outboard_php_pool::pool::testing::{StandIn, pool_without_workers};
use outboard_php_pool::pool::{Pool, PoolSettings};
use outboard_reactor::testing::{in_loop, wait_for};
use outboard_ring::operation::{Call, FetchOptions};
use outboard_upstream::Settings;
use outboard_upstream::testing::{Upstream, ok};
use std::path::Path;

mod batches;
mod calls;

use calls::Calls;

const ID: Tag = Tag { slot: 0, generation: 1 };

/// An app whose only worker is the test.
struct Fixture {
    _directory: Directory,
    operations: Rc<FetchOperations>,
    memory: Rc<outboard_buffer::Account>,
    pool: Rc<Pool>,
    worker: StandIn,
}

/// A completion that was copied.
#[derive(Debug, PartialEq, Eq)]
enum Received {
    Head(u16),
    Body(Vec<u8>),
    Whole(u16, Vec<u8>),
    End,
    Failed(Failure, String),
}

impl Fixture {
    fn new() -> Self {
        Self::with_memory(64 << 20)
    }

    fn with_memory(bytes: usize) -> Self {
        Self::with(bytes, "")
    }

    fn with(bytes: usize, keys: &str) -> Self {
        let directory = Directory::new();
        let config = directory.config(keys);
        let app = &config.apps[0];
        let settings = PoolSettings::of(app, Path::new("/nonexistent"), None).unwrap();
        let sink = Sink::open(LogTarget::Off, Opener::default()).unwrap();
        let pool =
            pool_without_workers(settings, Rc::new(ErrorLog::new(Rc::new(sink), Level::Debug)));
        let operations = FetchOperations::new(
            Client::new(Settings::default()),
            Account::new("site", 100, 100),
            Some(directory.entities("")),
            Owner::of(app, &config),
            app.sandbox.as_ref(),
        );
        let memory = outboard_buffer::Memory::new(bytes).of_app("site").operations;
        pool.set_operations(Rc::new(Calls(operations.clone())));
        pool.set_memory(memory.clone());
        let worker = StandIn::join(&pool, 1);
        Self { _directory: directory, operations, memory, pool, worker }
    }

    fn request(&mut self, id: Tag, call: Call<'_>) {
        self.worker.request(&self.pool, id, call);
    }

    /// The next completion, of `id`.
    async fn receive(&mut self, id: Tag) -> Received {
        let (worker, pool) = (&mut self.worker, &self.pool);
        let copy = |completion: Completion<'_>| {
            assert_eq!(completion.id, id);
            match completion.part {
                Part::Head(head) => Received::Head(head.status),
                Part::Body(body) => Received::Body(body.to_vec()),
                Part::Whole(head, body) => Received::Whole(head.status, body.to_vec()),
                Part::End => Received::End,
                Part::Failed { failure, message } => Received::Failed(failure, message.to_owned()),
                part @ (Part::Number(_) | Part::Queried(_)) => panic!("not requested: {part:?}"),
            }
        };
        wait_for("a completion", || worker.completion(pool).map(copy)).await
    }

    /// The kind of the failure that is received next.
    async fn failure(&mut self) -> Failure {
        match self.receive(ID).await {
            Received::Failed(failure, _) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    async fn wait_until_idle(&self) {
        let is_idle = || (self.memory.held_bytes() == 0 && self.is_closed()).then_some(());
        wait_for("end of all calls", is_idle).await;
    }

    fn is_closed(&self) -> bool {
        self.operations.open.borrow().values().all(HashMap::is_empty)
    }
}

fn fetch<'a>(url: &'a str, body_bytes: u32) -> Call<'a> {
    Call::Fetch(FetchCall {
        url: url.as_bytes(),
        method: if body_bytes == 0 { b"GET" } else { b"POST" },
        headers: b"X-Own: 1\n",
        body_bytes,
        connect_timeout_ms: 5_000,
        timeout_ms: 10_000,
        max_body_bytes: 4 << 20,
        max_redirects: 0,
        retries: 0,
        options: FetchOptions { verify: true, decompress: true, http2: false },
    })
}

fn url(upstream: &Upstream) -> String {
    format!("http://127.0.0.1:{}/path", upstream.port)
}

#[test]
fn a_response_is_relayed_and_its_memory_released() {
    in_loop(async {
        let upstream = Upstream::start(|_| ok("X-Theirs: 2\r\n", "hello"));
        let mut site = Fixture::new();
        site.request(ID, fetch(&url(&upstream), 0));
        assert!(site.memory.held_bytes() >= OPERATION_BYTES);
        assert_eq!(site.receive(ID).await, Received::Whole(200, b"hello".to_vec()));
        let request = upstream.last_request();
        assert!(request.starts_with("GET /path HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nX-Own: 1\r\n"), "{request}");
        site.wait_until_idle().await;
    });
}

#[test]
fn a_body_in_pieces_is_sent_with_its_announced_length() {
    in_loop(async {
        let upstream = Upstream::with_body("ok");
        let mut site = Fixture::new();
        site.request(ID, fetch(&url(&upstream), 10));
        site.request(ID, Call::FetchBody(b"01234"));
        assert_eq!(upstream.requests.borrow().len(), 0, "the body is incomplete");
        // More than was announced, which is neither sent nor counted.
        site.request(ID, Call::FetchBody(b"56789 and more"));
        site.request(ID, Call::FetchBody(b"and more"));
        assert_eq!(site.receive(ID).await, Received::Whole(200, b"ok".to_vec()));
        let request = upstream.last_request();
        assert!(request.contains("Content-Length: 10\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\n0123456789"), "{request}");
        site.wait_until_idle().await;
    });
}

#[test]
fn a_long_response_arrives_in_order_in_pieces() {
    in_loop(async {
        const BYTES: usize = 1 << 20;
        let body: String = ('a'..='z').cycle().take(BYTES).collect();
        let expected = body.clone();
        let upstream = Upstream::start(move |_| ok("", &body));
        let mut site = Fixture::new();
        site.request(ID, fetch(&url(&upstream), 0));
        assert_eq!(site.receive(ID).await, Received::Head(200));
        let mut received = Vec::new();
        loop {
            match site.receive(ID).await {
                Received::Body(piece) => {
                    assert!(piece.len() <= PIECE_BYTES, "{} bytes", piece.len());
                    received.extend(piece);
                }
                end => break assert_eq!(end, Received::End),
            }
        }
        assert!(received == expected.as_bytes());
        site.wait_until_idle().await;
    });
}

#[test]
fn invalid_calls_fail_at_once_and_hold_no_memory() {
    in_loop(async {
        let mut site = Fixture::new();
        for url in ["ftp://127.0.0.1/", "no url", "http://", "http://a\r\nb/"] {
            site.request(ID, fetch(url, 0));
            assert_eq!(site.failure().await, Failure::BadCall, "{url}");
        }
        site.request(ID, fetch("http://127.0.0.1/", BODY_MAX_BYTES as u32 + 1));
        assert_eq!(site.failure().await, Failure::BadCall);
        let Call::Fetch(call) = fetch("http://127.0.0.1/", 0) else { unreachable!() };
        site.request(ID, Call::Fetch(FetchCall { headers: b"no colon\n", ..call }));
        assert_eq!(site.failure().await, Failure::BadCall);
        assert_eq!((site.memory.held_bytes(), site.is_closed()), (0, true));
    });
}

#[test]
fn frames_that_belong_to_no_call_are_ignored() {
    in_loop(async {
        let mut site = Fixture::new();
        site.worker.request_with(&site.pool, b"");
        site.worker.request_with(&site.pool, &[255; 40]);
        site.request(ID, Call::FetchBody(b"of nothing"));
        site.request(ID, Call::Forget);
        assert_eq!(site.worker.completion(&site.pool), None);
        assert_eq!((site.memory.held_bytes(), site.is_closed()), (0, true));
    });
}

#[test]
fn a_refused_connection_is_reported_as_such() {
    in_loop(async {
        let mut site = Fixture::new();
        // A port that was free just now.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", free.local_addr().unwrap());
        drop(free);
        site.request(ID, fetch(&url, 0));
        assert_eq!(site.failure().await, Failure::Connect);
        site.wait_until_idle().await;
    });
}

#[test]
fn a_response_beyond_the_limit_of_the_call_fails() {
    in_loop(async {
        let upstream = Upstream::with_body("0123456789");
        let mut site = Fixture::new();
        let url = url(&upstream);
        let Call::Fetch(call) = fetch(&url, 0) else { unreachable!() };
        site.request(ID, Call::Fetch(FetchCall { max_body_bytes: 9, ..call }));
        assert_eq!(site.failure().await, Failure::TooLarge);
        site.wait_until_idle().await;
    });
}

#[test]
fn announced_bodies_are_counted_and_refused_beyond_the_limit() {
    in_loop(async {
        // Two of these are more than one worker's share.
        let mut site = Fixture::with_memory(16 << 20);
        let call = |number: u32| Tag { slot: number, generation: 1 };
        site.request(call(1), fetch("http://127.0.0.1/", 3 << 20));
        let held = site.memory.held_bytes();
        assert!(held > 3 << 20, "{held}");
        site.request(call(2), fetch("http://127.0.0.1/", 3 << 20));
        let refused = site.receive(call(2)).await;
        assert!(matches!(refused, Received::Failed(Failure::Busy, _)), "{refused:?}");
        assert_eq!(site.memory.held_bytes(), held);
        site.request(call(1), Call::Forget);
        assert_eq!((site.memory.held_bytes(), site.is_closed()), (0, true));
    });
}

#[test]
fn a_call_with_the_id_of_another_replaces_it() {
    in_loop(async {
        let mut site = Fixture::new();
        site.request(ID, fetch("http://127.0.0.1/", 1 << 20));
        let held = site.memory.held_bytes();
        site.request(ID, fetch("http://127.0.0.1/", 1 << 20));
        assert_eq!(site.memory.held_bytes(), held, "only one of them is counted");
    });
}

#[test]
fn a_dead_worker_leaves_no_calls() {
    in_loop(async {
        // It never responds.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let mut site = Fixture::new();
        let call = |number: u32| Tag { slot: number, generation: 1 };
        site.request(call(1), fetch(&url, 0));
        site.request(call(2), fetch(&url, 100));
        assert!(!site.is_closed());
        let Fixture { worker, pool, memory, operations, .. } = site;
        worker.die(&pool);
        wait_for("end of all calls", || (memory.held_bytes() == 0).then_some(())).await;
        assert!(operations.open.borrow().is_empty());
    });
}

#[test]
fn a_url_is_http_or_https_and_nothing_else() {
    in_loop(async {
        let mut site = Fixture::new();
        for url in
            ["entities:default", "rates:mail", "file:///etc/passwd", "unix:/x", "//h/", "ftp://h/"]
        {
            site.request(ID, fetch(url, 0));
            let Received::Failed(Failure::BadCall, _) = site.receive(ID).await else {
                panic!("{url}")
            };
        }
        site.wait_until_idle().await;
    });
}

#[test]
fn a_strict_sandbox_holds_for_fetches_and_their_redirects() {
    in_loop(async {
        let upstream = Upstream::start(|_| ok("", "hello"));
        let to = url(&upstream);
        let other = Upstream::start(move |_| {
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
        });
        let keys =
            format!("[app.site.sandbox]\nlevel = \"strict\"\nconnect_ports = [{}]", other.port);
        let mut site = Fixture::with(64 << 20, &keys);
        for target in [url(&upstream), url(&other)] {
            let Call::Fetch(call) = fetch(&target, 0) else { unreachable!() };
            site.request(ID, Call::Fetch(FetchCall { max_redirects: 3, ..call }));
            let Received::Failed(Failure::BadCall, why) = site.receive(ID).await else {
                panic!("{target}")
            };
            assert!(why.contains("connect_ports"), "{why}");
        }
        site.wait_until_idle().await;
    });
}
