//! The client against a peer that sends exactly the bytes of the test.

use crate::{Client, Error, Kind, Request, Response, Settings, Url};
use outboard_reactor::{now_ms, run, sleep};
use std::error::Error as _;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello";
/// Reads without a response until the client closes.
const SILENCE: &str = "";

/// Idle connections, and requests under way.
fn open(client: &Client) -> (usize, usize) {
    let gauges = client.gauges();
    (gauges.idle, gauges.under_way)
}

/// A peer with a list of responses for each connection, which it closes after the last.
struct Peer {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    /// Number of connections that it has closed.
    closed: Arc<AtomicUsize>,
}

impl Peer {
    fn saying(connections: &[&[&str]]) -> Self {
        Self::saying_bytes(
            connections
                .iter()
                .map(|answers| answers.iter().map(|answer| answer.as_bytes().to_vec()).collect())
                .collect(),
        )
    }

    fn saying_bytes(connections: Vec<Vec<Vec<u8>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let closed = Arc::new(AtomicUsize::new(0));
        let (theirs, ended) = (heard.clone(), closed.clone());
        thread::spawn(move || {
            for answers in connections {
                let (stream, _) = listener.accept().unwrap();
                let (heard, closed) = (theirs.clone(), ended.clone());
                thread::spawn(move || {
                    answer(stream, &answers, &heard);
                    closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, heard, closed }
    }

    fn url(&self, target: &str) -> Url {
        Url::parse(format!("http://{}{target}", self.address).as_bytes()).unwrap()
    }

    fn get(&self, target: &str) -> Request {
        Request::get(self.url(target))
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, answers: &[Vec<u8>], heard: &Mutex<Vec<String>>) {
    for answer in answers {
        let mut request = Vec::new();
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            let mut piece = [0; 4096];
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(count) => request.extend_from_slice(&piece[..count]),
            }
        }
        heard.lock().unwrap().push(String::from_utf8(request).unwrap());
        if answer.is_empty() {
            let _ = stream.read(&mut [0; 1]);
            return;
        }
        stream.write_all(answer).unwrap();
    }
}

fn on_loop<F: Future<Output = ()> + 'static>(test: impl FnOnce(Rc<Client>) -> F + 'static) {
    run(async { test(Client::new(Settings::default())).await }).unwrap();
}

async fn whole(mut response: Response) -> Result<(u16, Vec<u8>), Error> {
    let mut body = Vec::new();
    while response.read(&mut body).await? {}
    Ok((response.status, body))
}

async fn fetch(client: &Rc<Client>, request: Request) -> Result<(u16, Vec<u8>), Error> {
    whole(client.send(request).await?).await
}

async fn failure(client: &Rc<Client>, request: Request) -> Kind {
    fetch(client, request).await.unwrap_err().kind
}

#[test]
fn a_call_is_small_enough_to_be_moved() {
    on_loop(|client| async move {
        let url = Url::parse(b"http://127.0.0.1:1/").unwrap();
        // A call is moved into its task; its large and rare parts are boxed.
        let call = client.send(Request::get(url));
        assert!(size_of_val(&call) < 3_000, "{}", size_of_val(&call));
    });
}

#[test]
fn requests_reuse_an_idle_connection() {
    on_loop(|client| async move {
        let chunked =
            "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let peer = Peer::saying(&[&[OK, chunked, OK]]);
        let response = client.send(peer.get("/a?b")).await.unwrap();
        assert_eq!(response.headers, b"Content-Length: 5\nX-A: 1\n");
        assert_eq!(whole(response).await.unwrap(), (200, b"hello".to_vec()));
        assert_eq!(fetch(&client, peer.get("/c")).await.unwrap(), (404, b"abcde".to_vec()));
        assert_eq!(fetch(&client, peer.get("/d")).await.unwrap(), (200, b"hello".to_vec()));
        assert!(peer.heard()[0].starts_with("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:"));
        let counters = client.counters();
        assert_eq!((counters.requests, counters.connections, counters.reused), (3, 1, 2));
        assert_eq!(open(&client), (1, 0));
    });
}

#[test]
fn a_connection_closed_by_the_peer_is_not_used() {
    on_loop(|client| async move {
        let peer = Peer::saying(&[&[OK], &[OK]]);
        fetch(&client, peer.get("/")).await.unwrap();
        let mut post = peer.get("/");
        post.method = b"POST".to_vec();
        // The peer closes after its response. A POST must notice that, since it cannot be retried.
        while peer.closed.load(Ordering::SeqCst) == 0 {
            sleep(1).await;
        }
        assert_eq!(fetch(&client, post).await.unwrap().0, 200);
        assert_eq!(client.counters().connections, 2);
    });
}

#[test]
fn a_connection_with_unread_bytes_is_not_reused() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[answer, OK], &[OK]]);
            fetch(&client, peer.get("/")).await.unwrap();
            fetch(&client, peer.get("/")).await.unwrap();
            assert_eq!(client.counters().connections, 2, "{answer:?}");
        });
    }
}

#[test]
fn an_ambiguous_response_is_rejected() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhellooo0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[answer, OK]]);
            assert_eq!(failure(&client, peer.get("/")).await, Kind::Protocol, "{answer:?}");
            assert_eq!(open(&client), (0, 0));
        });
    }
}

#[test]
fn a_truncated_response_is_an_error() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nX-A",
    ] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[answer]]);
            assert_eq!(failure(&client, peer.get("/")).await, Kind::Protocol, "{answer:?}");
            let failed: Vec<_> = client.counters().failures().filter(|(_, n)| *n > 0).collect();
            assert_eq!(failed, [(Kind::Protocol, 1)]);
        });
    }
}

#[test]
fn bodies_end_as_their_framing_says() {
    for (method, answer, body) in [
        ("GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"),
        ("GET", "HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", ""),
        ("GET", "HTTP/1.1 204 No\r\n\r\n", ""),
        ("GET", "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", ""),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "ok",
        ),
    ] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[answer]]);
            let mut request = peer.get("/");
            request.method = method.into();
            assert_eq!(fetch(&client, request).await.unwrap().1, body.as_bytes(), "{answer:?}");
        });
    }
}

#[test]
fn only_idempotent_requests_are_retried() {
    on_loop(|client| async move {
        let peer = Peer::saying(&[&[], &[OK], &[]]);
        assert_eq!(fetch(&client, peer.get("/")).await.unwrap().0, 200);
        assert_eq!(client.counters().retries, 1);
        let client = Client::new(Settings::default());
        let mut post = peer.get("/");
        post.method = b"POST".to_vec();
        assert_eq!(failure(&client, post).await, Kind::Protocol);
        assert_eq!(client.counters().retries, 0);
    });
}

#[test]
fn a_refused_connection_is_a_connect_error() {
    on_loop(|client| async move {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = Url::parse(format!("http://{free}/").as_bytes()).unwrap();
        let error = fetch(&client, Request::get(url)).await.unwrap_err();
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        let cause = cause.map(io::Error::kind);
        assert_eq!((error.kind, cause), (Kind::Connect, Some(io::ErrorKind::ConnectionRefused)));
        assert_eq!(client.counters().retries, 1);
        let url = Url::parse(b"http://name.invalid/").unwrap();
        let error = fetch(&client, Request::get(url)).await.unwrap_err();
        assert!(error.kind == Kind::Resolve && error.source().is_some(), "{error:?}");
    });
}

#[test]
fn a_name_is_resolved_off_the_loop() {
    on_loop(|client| async move {
        let peer = Peer::saying(&[&[OK]]);
        let url = format!("http://localhost:{}/", peer.address.port());
        let request = Request::get(Url::parse(url.as_bytes()).unwrap());
        assert_eq!(fetch(&client, request).await.unwrap().0, 200);
    });
}

#[test]
fn a_call_times_out_before_the_head_and_within_the_body() {
    on_loop(|client| async move {
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
        let peer = Peer::saying(&[&[SILENCE], &[cut, SILENCE]]);
        for _ in 0..2 {
            let mut request = peer.get("/");
            request.timeout_ms = 60;
            let begin_ms = now_ms();
            assert_eq!(failure(&client, request).await, Kind::Timeout);
            assert!(now_ms() - begin_ms >= 60);
        }
    });
}

#[test]
fn a_redirect_is_followed_and_a_loop_ends() {
    on_loop(|client| async move {
        let away = "HTTP/1.1 302 Found\r\nLocation: /b?c\r\nContent-Length: 4\r\n\r\ngone";
        let peer = Peer::saying(&[&[away, OK, away, away], &[away]]);
        let response = client.send(peer.get("/a")).await.unwrap();
        assert_eq!(response.url, peer.url("/b?c"));
        assert_eq!(whole(response).await.unwrap().0, 200);
        let mut request = peer.get("/a");
        request.max_redirects = 1;
        assert_eq!(failure(&client, request.clone()).await, Kind::Redirects);
        request.max_redirects = 0;
        assert_eq!(fetch(&client, request).await.unwrap(), (302, b"gone".to_vec()));
        assert_eq!((client.counters().connections, client.counters().redirects), (2, 2));
    });
}

#[test]
fn a_body_is_never_larger_than_allowed() {
    for answer in [
        OK,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello",
    ] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[answer], &[answer]]);
            let mut request = peer.get("/");
            request.max_body_bytes = 4;
            assert_eq!(failure(&client, request.clone()).await, Kind::TooLarge, "{answer:?}");
            request.max_body_bytes = 5;
            assert_eq!(fetch(&client, request).await.unwrap().1, b"hello");
        });
    }
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    let body = encoder.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\nX-A: 1\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

#[test]
fn a_coded_body_is_decoded_and_its_head_stays_true() {
    on_loop(|client| async move {
        let text = b"many words ".repeat(1000);
        let answer = gzipped(&text);
        let coded_len =
            answer.len() - 2 - answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let peer = Peer::saying_bytes(vec![vec![answer.clone(), answer.clone(), answer]]);
        let response = client.send(peer.get("/")).await.unwrap();
        assert_eq!(response.headers, b"X-A: 1\n");
        assert!(whole(response).await.unwrap().1 == text);
        let mut raw = peer.get("/");
        raw.decompress = false;
        let response = client.send(raw).await.unwrap();
        assert_eq!(response.header(b"content-encoding"), Some(&b"gzip"[..]));
        assert_eq!(whole(response).await.unwrap().1.len() + 2, coded_len);
        let mut bomb = peer.get("/");
        bomb.max_body_bytes = 5000;
        assert_eq!(failure(&client, bomb).await, Kind::TooLarge);
    });
}

#[test]
fn requests_beyond_the_limits_of_an_origin_are_rejected() {
    run(async {
        let settings =
            Settings { requests_per_host: 1, waiting_per_host: 0, ..Settings::default() };
        let client = Client::new(settings);
        let peer = Peer::saying(&[&[OK, OK]]);
        let first = client.send(peer.get("/")).await.unwrap();
        // The body has arrived with the head, but was not read.
        assert_eq!(failure(&client, peer.get("/")).await, Kind::Busy);
        assert_eq!(whole(first).await.unwrap().0, 200);
        assert_eq!(fetch(&client, peer.get("/")).await.unwrap().0, 200);
    })
    .unwrap();
}

#[test]
fn idle_connections_make_room_and_busy_ones_do_not() {
    run(async {
        let client = Client::new(Settings { connections: 2, ..Settings::default() });
        let peers = [(); 4].map(|()| Peer::saying(&[&[OK, OK]]));
        for peer in &peers {
            assert_eq!(fetch(&client, peer.get("/")).await.unwrap().0, 200);
            // Of connections that are idle since the same millisecond any may be closed.
            outboard_reactor::sleep(2).await;
        }
        assert_eq!(client.gauges().idle, 2, "the last two of four remain");
        let busy = [
            client.send(peers[3].get("/")).await.unwrap(),
            client.send(peers[2].get("/")).await.unwrap(),
        ];
        let other = Peer::saying(&[&[OK]]);
        assert_eq!(failure(&client, other.get("/")).await, Kind::Busy);
        drop(busy);
        assert_eq!(fetch(&client, other.get("/")).await.unwrap().0, 200);
    })
    .unwrap();
}

#[test]
fn an_account_limits_its_caller() {
    on_loop(|client| async move {
        let account = crate::Account::new("a", 1, 10);
        let peer = Peer::saying(&[&[OK], &[OK], &[OK, OK]]);
        let asking = |account: Option<&Arc<crate::Account>>| Request {
            account: account.cloned(),
            ..peer.get("/")
        };
        let first = client.send(asking(Some(&account))).await.unwrap();
        assert_eq!(failure(&client, asking(Some(&account))).await, Kind::Busy);
        assert_eq!(fetch(&client, asking(None)).await.unwrap().0, 200, "others have their own");
        drop(first);
        assert_eq!(fetch(&client, asking(Some(&account))).await.unwrap().0, 200);
    });
}

#[test]
fn dropping_an_unread_response_closes_its_connection() {
    on_loop(|client| async move {
        let peer = Peer::saying(&[&[OK], &[OK]]);
        drop(client.send(peer.get("/")).await.unwrap());
        assert_eq!(open(&client), (0, 0));
        fetch(&client, peer.get("/")).await.unwrap();
        assert_eq!(client.counters().connections, 2);
    });
}

#[test]
fn idle_connections_are_closed_after_their_time() {
    run(async {
        let client = Client::new(Settings { idle_timeout_ms: 40, ..Settings::default() });
        let peer = Peer::saying(&[&[OK, OK]]);
        fetch(&client, peer.get("/")).await.unwrap();
        assert_eq!(client.gauges().idle, 1);
        while client.gauges().idle > 0 {
            sleep(5).await;
        }
        assert!(client.connections.is_empty() && client.group().is_empty());
    })
    .unwrap();
}

#[test]
fn heads_and_interim_responses_are_bounded() {
    let long = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(300_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Many: x\r\n".repeat(300));
    let endless = "HTTP/1.1 200 OK\r\nX-Endless: ".to_owned() + &"x".repeat(300_000);
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(100) + OK;
    for answer in [long, many, endless, interim] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[answer.as_str()]]);
            assert_eq!(failure(&client, peer.get("/")).await, Kind::Protocol, "{answer:.40?}");
            assert_eq!(open(&client), (0, 0), "{answer:.40?}");
        });
    }
}

/// RFC 9112 6.3: bytes behind a response without a body belong to no response.
#[test]
fn bytes_behind_a_response_are_not_the_next_response() {
    for (method, status) in [("GET", "204 No"), ("GET", "304 No"), ("HEAD", "200 OK")] {
        on_loop(move |client| async move {
            let poisoned = format!("HTTP/1.1 {status}\r\nX: 1\r\nContent-Length: 38\r\n\r\n");
            let poisoned = poisoned + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
            let peer = Peer::saying(&[&[poisoned.as_str(), OK], &[OK]]);
            let mut request = peer.get("/");
            request.method = method.into();
            assert_eq!(fetch(&client, request).await.unwrap().1, b"", "{status}");
            assert_eq!(fetch(&client, peer.get("/next")).await.unwrap().1, b"hello", "{status}");
            assert_eq!(client.counters().connections, 2);
        });
    }
}

#[test]
fn trailers_and_connection_fields_are_not_headers() {
    on_loop(|client| async move {
        let answer = "HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n\
            Keep-Alive: timeout=5\r\nProxy-Connection: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\n\
            X-Own: 1\r\n\r\n5\r\nhello\r\n0\r\nX-Late: 1\r\nX-Own: 2\r\n\r\n";
        let peer = Peer::saying(&[&[answer, OK]]);
        let response = client.send(peer.get("/")).await.unwrap();
        let headers = String::from_utf8(response.headers.clone()).unwrap();
        assert_eq!(whole(response).await.unwrap().1, b"hello");
        for hop in ["X-Hop", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Late: "] {
            assert!(!headers.contains(hop), "{hop}: {headers}");
        }
        assert!(headers.contains("X-Own: 1\n") && !headers.contains("X-Own: 2"), "{headers}");
        fetch(&client, peer.get("/")).await.unwrap();
        assert_eq!(client.counters().connections, 1, "it was read to its end");
    });
}

#[test]
fn a_switch_to_another_protocol_is_rejected() {
    for (fields, is_taken) in [
        ("Connection: upgrade\r\nUpgrade: WebSocket\r\n", true),
        ("Connection: upgrade\r\nUpgrade: h2c\r\n", false),
        ("Connection: upgrade\r\n", false),
    ] {
        on_loop(move |client| async move {
            let answer = format!("HTTP/1.1 101 Switching\r\n{fields}\r\nearly");
            let peer = Peer::saying(&[&[answer.as_str()]]);
            let mut request = peer.get("/");
            request.switch_to = Some(b"websocket".to_vec());
            match client.send(request).await {
                Ok(response) => assert!(is_taken && response.into_channel().is_some(), "{fields}"),
                Err(error) => assert!(!is_taken && error.kind == Kind::Protocol, "{fields}"),
            }
        });
    }
}

/// A request that has received a part of its response is never retried.
#[test]
fn a_partial_response_is_not_retried() {
    for answer in ["H", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 103 Early\r\n\r\n"] {
        on_loop(move |client| async move {
            let peer = Peer::saying(&[&[OK, answer], &[OK]]);
            fetch(&client, peer.get("/")).await.unwrap();
            let failed = fetch(&client, peer.get("/again")).await;
            assert_eq!(failed.unwrap_err().kind, Kind::Protocol, "{answer:?}");
            assert_eq!(peer.heard().len(), 2, "{answer:?}");
        });
    }
}

#[test]
fn an_error_without_a_connection_says_that_nothing_was_sent() {
    on_loop(|client| async move {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = |port: u16| Url::parse(format!("http://127.0.0.1:{port}/").as_bytes()).unwrap();
        let mut request = Request::get(url(nobody.port()));
        request.retries = 0;
        let error = client.send_once(&request).await.unwrap_err();
        assert!(error.kind == Kind::Connect && error.is_unsent());
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        request.url = url(server.local_addr().unwrap().port());
        request.timeout_ms = 50;
        let error = client.send_once(&request).await.unwrap_err();
        assert!(error.kind == Kind::Timeout && !error.is_unsent(), "it accepts and is silent");
    });
}

#[test]
fn a_request_alone_neither_takes_nor_leaves_a_connection() {
    on_loop(|client| async move {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let theirs = heard.clone();
        std::thread::spawn(move || {
            for stream in server.incoming().flatten() {
                let theirs = theirs.clone();
                let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
                std::thread::spawn(move || answer(stream, &[ok.clone(), ok], &theirs));
            }
        });
        let url = Url::parse(format!("http://{address}/").as_bytes()).unwrap();
        let shared = Request::get(url);
        let mut alone = shared.clone();
        alone.is_alone = true;
        for request in [&shared, &alone, &shared] {
            whole(client.send_once(request).await.unwrap()).await.unwrap();
        }
        let counters = client.counters();
        assert_eq!((counters.connections, counters.reused), (2, 1));
        assert_eq!(client.gauges().idle, 1);
    });
}

#[test]
fn an_endpoint_has_connections_of_its_own_whatever_the_url() {
    on_loop(|client| async move {
        let directory = std::env::temp_dir().join(format!("endpoint-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("server.sock");
        let _ = std::fs::remove_file(&path);
        let server = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let received = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, mut head) = (server.accept().unwrap().0, Vec::new());
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            String::from_utf8(head).unwrap()
        });
        let mut request = Request::get(Url::parse(b"http://localhost/a").unwrap());
        let name = format!("unix:{}", path.display()).into();
        let address = crate::EndpointAddress::Unix(path.clone());
        request.endpoint = Some(Arc::new(crate::Endpoint { name, address }));
        request.preface = b"PROXY UNKNOWN\r\n".to_vec();
        let response = client.send_once(&request).await.unwrap();
        assert_eq!(whole(response).await.unwrap(), (200, b"ok".to_vec()));
        let head = received.join().unwrap();
        assert!(
            head.starts_with("PROXY UNKNOWN\r\nGET /a HTTP/1.1\r\nHost: localhost\r\n"),
            "{head}"
        );
        assert_eq!(client.gauges().idle, 0, "its header was for one client");
        std::fs::remove_dir_all(&directory).unwrap();
        request.preface.clear();
        let error = client.send_once(&request).await.unwrap_err();
        assert!(error.message.starts_with("no connection to unix:"), "{}", error.message);
    });
}
