//! Routes that another server answers: what goes through, what stays behind, and what is said when
//! the other server fails.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Configured, Connection, Docroot, Framing, Protocol, Request, accept, connect,
};
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn serving(backend: &str, more: &str) -> Configured {
    let tables = format!("[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{backend}\"\n{more}\n");
    Configured::serving("page_cache", &tables)
}

#[test]
fn a_request_goes_through_with_all_that_is_its_own() {
    let backend = Backend::start();
    let site = serving(&backend.url(), "");
    let request = Request::new("PATCH", "/echo?a=%20b&c")
        .header("X-Own", "kept")
        .header("Connection", "close, X-Hop")
        .header("X-Hop", "not passed on")
        .header("Keep-Alive", "300")
        .header("Via", "1.0 before")
        .header("X-Forwarded-For", "6.6.6.6")
        .header("X-Forwarded-Proto", "https")
        .header("Forwarded", "for=6.6.6.6")
        .body("a body");
    let heard = site.client().send(&request).expect(200).text();
    let lines: Vec<String> = heard.lines().map(str::to_lowercase).collect();
    assert!(heard.starts_with("PATCH /echo?a=%20b&c HTTP/1.1\r\n"), "{heard}");
    assert!(heard.ends_with("\r\n\r\na body"), "{heard}");
    for line in [
        format!("host: {}", site.address()),
        "x-own: kept".to_owned(),
        "content-length: 6".to_owned(),
        "x-forwarded-for: 127.0.0.1".to_owned(),
        format!("x-forwarded-proto: {}", Protocol::of_run().scheme()),
        format!("x-forwarded-host: {}", site.address()),
        format!("via: 1.0 before, {} outboard", Protocol::of_run().version()),
    ] {
        assert!(lines.contains(&line), "{line} in {heard}");
    }
    for name in ["connection", "x-hop", "keep-alive", "forwarded", "transfer-encoding"] {
        assert!(!lines.iter().any(|line| line.starts_with(&format!("{name}:"))), "{name}: {heard}");
    }
}

/// An application that trusts a proxy trusts these.
#[test]
fn forged_forwarding_headers_do_not_reach_upstreams() {
    let backend = Backend::start();
    let claims = [
        ("X-Real-IP", "6.6.6.6"),
        ("X-Forwarded-Port", "666"),
        ("X-Forwarded-Prefix", "//evil.test"),
        ("X-Forwarded-Server", "evil.test"),
        ("X-Forwarded-Ssl", "on"),
        ("X-Forwarded-Scheme", "https"),
        ("Front-End-Https", "on"),
        ("X-Original-URL", "/evil"),
        ("X-Rewrite-URL", "/evil"),
        ("True-Client-IP", "6.6.6.6"),
    ];
    let never = [("X_Forwarded_For", "6.6.6.6"), ("Content_Length", "66"), ("Proxy", "evil.test")];
    let request = claims.iter().chain(&never);
    let request =
        request.fold(Request::get("/echo"), |request, (name, value)| request.header(name, value));
    let site = serving(&backend.url(), "");
    let heard = site.client().send(&request).expect(200).text().to_lowercase();
    for (name, value) in claims.iter().chain(&never) {
        assert!(!heard.contains(&format!("\r\n{}:", name.to_lowercase())), "{name}: {heard}");
        let is_true = *value == Protocol::of_run().scheme();
        assert!(is_true || !heard.contains(&format!(": {value}\r\n")), "{name}: {heard}");
    }
    let text = Configured::text(&format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{}\"\n",
        backend.url()
    ));
    let text = format!("trusted_proxies = [\"127.0.0.1\"]\n{text}");
    let site = Configured::start(Docroot::of("page_cache"), &text);
    let heard = site.client().send(&request).expect(200).text().to_lowercase();
    for (name, value) in claims {
        let line = format!("\r\n{}: {value}\r\n", name.to_lowercase());
        assert!(heard.contains(&line), "{name}: {heard}");
    }
    for (name, _) in never {
        assert!(!heard.contains(&format!("\r\n{}:", name.to_lowercase())), "{name}: {heard}");
    }
}

#[test]
fn the_word_of_a_trusted_proxy_about_the_client_is_passed_on() {
    let backend = Backend::start();
    let text = Configured::text(&format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{}\"\npreserve_host = false\n",
        backend.url()
    ));
    let text = format!("trusted_proxies = [\"127.0.0.1\"]\n{text}");
    let site = Configured::start(outboard_e2e::Docroot::of("page_cache"), &text);
    let request = Request::get("/echo")
        .header("X-Forwarded-For", "192.0.2.7")
        .header("X-Forwarded-Proto", "https");
    let heard = site.client().send(&request).expect(200).text().to_lowercase();
    for line in ["x-forwarded-for: 192.0.2.7, 127.0.0.1", "x-forwarded-proto: https"] {
        assert!(heard.contains(&format!("\r\n{line}\r\n")), "{line} in {heard}");
    }
    assert!(heard.contains(&format!("\r\nhost: {}\r\n", backend.address())), "{heard}");
}

#[test]
fn nothing_is_said_for_a_client_that_it_has_not_said() {
    let backend = Backend::start();
    let site = serving(&backend.url(), "");
    let heard = site.exchange("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for name in ["user-agent", "accept", "accept-encoding"] {
        assert!(!heard.to_lowercase().contains(&format!("\r\n{name}:")), "{name}: {heard}");
    }
}

#[test]
fn a_body_is_complete_before_the_upstream_is_contacted() {
    let backend = Backend::start();
    let site = serving(&backend.url(), "");
    let body = "x".repeat(700_000);
    for chunked in [false, true] {
        for body in ["", "a body", &body] {
            let mut wire = site.wire();
            let framing = match chunked {
                true => "Transfer-Encoding: chunked".to_owned(),
                false => format!("Content-Length: {}", body.len()),
            };
            wire.send(format!(
                "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{framing}\r\n\r\n"
            ));
            match (chunked, body.len()) {
                (false, _) => wire.send(body),
                (true, 0) => wire.send("0\r\n\r\n"),
                (true, length) => wire.send(format!("{length:x}\r\n{body}\r\n0\r\n\r\n")),
            }
            let heard = wire.to_end();
            let length = format!("\r\ncontent-length: {}\r\n", body.len());
            let head = heard.split_once("\r\n\r\n").expect("a head").1.to_lowercase();
            assert!(head.contains(&length), "{chunked} {length}");
            assert!(heard.ends_with(&format!("\r\n\r\n{body}")), "{chunked} {length}");
        }
    }
}

#[test]
fn an_answer_comes_back_as_it_is() {
    let backend = Backend::start();
    let site = serving(&backend.url(), "");
    let found = site.client().send(&Request::get("/to/elsewhere")).expect(302);
    assert_eq!(found.header("location"), Some("/elsewhere"));
    assert_eq!(found.header("server"), Some("test-backend"));
    assert_eq!(found.header("via"), Some("1.1 outboard"));
    assert_eq!(site.client().get("/status/418").expect(418).text(), "a body of the upstream");
    assert_eq!(site.client().get("/chunked").expect(200).text(), "from chunks");
    assert_eq!(site.client().get("/until-close").expect(200).text(), "until the end");
    let large = site.client().get("/large/3000000").expect(200);
    assert_eq!((large.body.len(), large.framing), (3_000_000, Framing::Length));
    // Codings are between the client and the upstream.
    let coded = Request::get("/gzip").header("Accept-Encoding", "gzip");
    let coded = site.client().send(&coded).expect(200);
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_eq!(coded.body[..2], [0x1f, 0x8b]);
    assert_eq!(site.client().send(&Request::new("HEAD", "/text/a")).expect(200).body, b"");
}

#[test]
fn a_script_can_send_a_response_of_an_upstream() {
    let backend = Backend::start();
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let tables = format!(
        "[[app.site.proxy]]\npath = \"/inner/**\"\nupstream = \"{}\"\ninternal = true\n",
        backend.url()
    );
    let site = Configured::start(docroot, &Configured::text(&tables));
    let order = |to: &str| {
        format!("/page.php?header[]=X-Accel-Redirect:{to}&header[]=Content-Disposition:inline")
    };
    // Its path is the script's word, and the body was the script's.
    let post = Request::new("POST", &order("/inner/../echo%3Fa")).body("x=1");
    assert_eq!(site.client().send(&post).status, 502, "there is no such way out");
    let post = Request::new("POST", &order("/inner/echo%3Fa")).body("x=1");
    let heard = site.client().send(&post).expect(404);
    assert_eq!(heard.header("content-disposition"), None, "an error is no file");
    assert_eq!(backend.heard(), ["/inner/echo?a"]);
    // No URL of a client leads there.
    assert_eq!(site.client().get("/inner/echo").status, 404);
    assert_eq!(backend.heard().len(), 1);
}

#[test]
fn the_order_of_a_script_is_a_get_with_the_scripts_own_fields() {
    let backend = Backend::start();
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let url = backend.url();
    let tables = format!("[[app.site.proxy]]\npath = \"/echo\"\nupstream = \"{url}\"\n");
    let site = Configured::start(docroot, &Configured::text(&tables));
    let target = "/page.php?header[]=X-Accel-Redirect:/echo%3Fb\
        &header[]=Content-Disposition:attachment&header[]=X-Other:lost";
    let post = Request::new("POST", target).header("X-Own", "kept").body("x=1");
    let answer = site.client().send(&post).expect(200);
    assert_eq!(answer.header("content-disposition"), Some("attachment"));
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("x-other"), None);
    let heard = answer.text();
    assert!(heard.starts_with("GET /echo?b HTTP/1.1\r\n"), "{heard}");
    assert!(heard.ends_with("\r\n\r\n") && heard.to_lowercase().contains("x-own: kept"), "{heard}");
    assert!(!heard.to_lowercase().contains("content-"), "{heard}");
}

#[test]
fn a_rewritten_path_is_requested_from_the_upstream() {
    let backend = Backend::start();
    let tables = format!(
        "[[app.site.rewrite]]\nmatch = '^/old/(.*)$'\nto = \"/text/$1\"\n\
         [[app.site.proxy]]\npath = \"/text/**\"\nupstream = \"{}/\"\n",
        backend.url()
    );
    let site = Configured::serving("page_cache", &tables);
    assert_eq!(site.client().get("/old/a%20word?x").expect(200).text(), "a%20word?x");
    let local = site.client().get("/own.php/a?times=1").status;
    assert_eq!((local, backend.heard()), (200, vec!["/text/a%20word?x".to_owned()]));
}

/// A peer for one connection, in the hands of the test.
struct Peer {
    listener: TcpListener,
}

impl Peer {
    fn new() -> Peer {
        Peer { listener: TcpListener::bind("127.0.0.1:0").expect("the loopback has free ports") }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().expect("it is bound"))
    }

    fn accept(&self) -> TcpStream {
        accept(&self.listener)
    }
}

/// Reads until this has come.
fn hear(stream: &mut TcpStream, end: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(end.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the gateway goes on");
        heard.push(byte[0]);
    }
    String::from_utf8(heard).expect("it is text")
}

#[test]
fn bodies_go_through_while_they_come_in_both_directions() {
    let peer = Peer::new();
    let site = serving(&peer.url(), "request_buffering = false");
    let mut client = Connection::open(site.address());
    client
        .send(b"POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        .unwrap();
    let mut upstream = peer.accept();
    let head = hear(&mut upstream, "5\r\nfirst\r\n");
    assert!(head.to_lowercase().contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
    client.send(b"4\r\nlast\r\n0\r\n\r\n").unwrap();
    hear(&mut upstream, "4\r\nlast\r\n0\r\n\r\n");
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        .unwrap();
    assert_eq!(client.head().unwrap().status, 200);
    assert_eq!(client.chunk().unwrap().as_deref(), Some(&b"one"[..]));
    upstream.write_all(b"3\r\ntwo\r\n0\r\n\r\n").unwrap();
    assert_eq!(client.chunk().unwrap().as_deref(), Some(&b"two"[..]));
    assert_eq!(client.chunk().unwrap(), None);
}

#[test]
fn an_early_response_of_an_upstream_is_forwarded() {
    let peer = Peer::new();
    let site = serving(&peer.url(), "request_buffering = false");
    let mut client = Connection::open(site.address());
    client.send(b"PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nfirst").unwrap();
    let mut upstream = peer.accept();
    hear(&mut upstream, "first");
    upstream
        .write_all(b"HTTP/1.1 403 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        .unwrap();
    drop(upstream);
    client.send(b"last").unwrap();
    assert_eq!(client.response().unwrap().expect(403).text(), "no");
}

/// A client that goes has the kernel say so by a reset; who only closes its side may still read, and
/// has gone where that is so configured.
#[test]
fn when_the_client_goes_the_upstream_is_left() {
    for is_reset in [true, false] {
        let peer = Peer::new();
        let more = if is_reset { "" } else { "[limits]\nabort_on_close = true" };
        let site = serving(&peer.url(), more);
        let mut client = connect(site.address());
        client.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut upstream = peer.accept();
        hear(&mut upstream, "\r\n\r\n");
        if is_reset {
            set_socket_linger(&client, Some(std::time::Duration::ZERO)).unwrap();
        }
        drop(client);
        assert_eq!(upstream.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_failure_has_a_status_and_a_reason_of_its_own() {
    let backend = Backend::start();
    let site = serving(&backend.url(), "timeout = \"200ms\"");
    let nobody = Peer::new();
    let down = nobody.url();
    drop(nobody);
    let dead = serving(&down, "");
    for (site, target, status, reason) in [
        (&dead, "/", 502, "upstream_failed"),
        (&site, "/silent", 504, "upstream_timeout"),
        (&site, "/both-lengths", 502, "upstream_failed"),
        (&site, "/reset", 502, "upstream_failed"),
    ] {
        let answer = site.client().send(&Request::get(target)).expect(status);
        assert_eq!(answer.header("x-outboard-reason"), Some(reason), "{target}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_never_whole() {
    let backend = Backend::start();
    let site = serving(&backend.url(), "");
    let mut client = Connection::open(site.address());
    client.send(&Request::get("/cut").to_bytes("a")).unwrap();
    assert!(client.response().is_err());
}

/// Whatever an upstream says, it is no part of the next answer, and others are served.
#[test]
fn an_invalid_response_is_502() {
    let large = |count: usize| "x".repeat(count);
    let answers = [
        "nonsense\r\n\r\n".to_owned(),
        "HTTP/2.0 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 2000 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\noko".to_owned(),
        "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX : a\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", large(300_000)),
        format!("HTTP/1.1 200 OK\r\nX: {}", large(300_000)),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(300)),
    ];
    let peer = Peer::new();
    let url = peer.url();
    let count = answers.len();
    let says = std::thread::spawn(move || {
        for _ in 0..2 * answers.len() {
            let mut stream = peer.accept();
            let head = hear(&mut stream, "\r\n\r\n");
            let number = head.split(['/', ' ']).nth(2).and_then(|number| number.parse().ok());
            let said = match number {
                Some(number) => answers.get::<usize>(number).expect("one of them").as_bytes(),
                None => b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwell",
            };
            // The gateway need not take all of what is too much.
            let _ = stream.write_all(said);
        }
    });
    let site = serving(&url, "");
    for number in 0..count {
        let answer = site.client().send(&Request::get(&format!("/{number}")));
        assert_eq!(answer.status, 502, "{number}");
        assert_eq!(answer.header("x-outboard-reason"), Some("upstream_failed"), "{number}");
        site.client().get("/next").expect(200).saying("well");
    }
    says.join().unwrap();
}

/// A request that may change something is sent once, whatever became of it.
#[test]
fn a_post_that_was_not_answered_is_not_sent_again() {
    let peer = Peer::new();
    let site = serving(&peer.url(), "");
    let mut client = Connection::open(site.address());
    client.send(&Request::new("POST", "/pay").body("x=1").to_bytes("a")).unwrap();
    let mut upstream = peer.accept();
    hear(&mut upstream, "x=1");
    drop(upstream);
    assert_eq!(client.response().unwrap().status, 502);
    // The next one to come is another request.
    client.send(&Request::get("/after").to_bytes("a")).unwrap();
    let mut upstream = peer.accept();
    let heard = hear(&mut upstream, "\r\n\r\n");
    assert!(heard.starts_with("GET /after "), "{heard}");
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    client.response().unwrap().expect(200).saying("ok");
}

/// A body that was taken whole and lies on disk is not needed any more then.
#[test]
fn an_upstream_that_refuses_a_large_body_at_its_head_is_heard() {
    let peer = Peer::new();
    let site = serving(&peer.url(), "[limits]\nbody = \"64 MiB\"");
    let mut client = Connection::open(site.address());
    let body = "x".repeat(16 << 20);
    let refuses = std::thread::spawn(move || {
        let mut upstream = peer.accept();
        hear(&mut upstream, "\r\n\r\n");
        upstream
            .write_all(b"HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
            .unwrap();
        // Without this the kernel resets the connection, and the answer may be lost with it.
        upstream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = std::io::copy(&mut upstream, &mut std::io::sink());
    });
    client.send(&Request::new("PUT", "/up").body(body).to_bytes("a")).unwrap();
    client.response().unwrap().expect(413).saying("no");
    refuses.join().unwrap();
}

#[test]
fn an_upstream_may_have_an_address_of_ipv6() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        eprintln!("this machine has no IPv6");
        return;
    };
    let peer = Peer { listener };
    let site = serving(&peer.url(), "preserve_host = false");
    let mut client = Connection::open(site.address());
    client.send(&Request::get("/").to_bytes("a")).unwrap();
    let mut upstream = peer.accept();
    let heard = hear(&mut upstream, "\r\n\r\n");
    let host = peer.url().replace("http://", "Host: ");
    assert!(heard.contains(&format!("\r\n{host}\r\n")), "{heard}");
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nsix").unwrap();
    client.response().unwrap().expect(200).saying("six");
}
