//! Pages that the gateway puts together from scripts, upstream answers, files and text.
//!
//! That things happen at the same time is shown by requests that wait for each other: a gateway
//! that did them one after the other would never answer.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Configured, Connection, Docroot, Framing, Request, Response, eventually,
};

/// A site with these pages; `BACKEND` stands for the backend's URL.
fn serving(backend: &Backend, pages: &str) -> Configured {
    serving_with(backend, pages, "")
}

fn serving_with(backend: &Backend, pages: &str, tables: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n{tables}\n[app.site]\n\
         root = \"www\"\n{}",
        pages.replace("BACKEND", &backend.url())
    );
    Configured::start(Docroot::of("compose"), &text)
}

const SEARCH: &str = r#"
[[app.site.compose]]
path = "/search"
[[app.site.compose.part]]
script = "/before.php"
[[app.site.compose.part]]
fetch = "BACKEND/text/found-{query:q}"
[[app.site.compose.part]]
text = "[text]"
[[app.site.compose.part]]
file = "/footer.html"
[[app.site.compose.part]]
script = "/after.php?part=last"
"#;

fn search(target: &str) -> Request {
    Request::get(target).header("Cookie", "visitor=me").header("X-Asked", "asked")
}

#[test]
fn a_page_is_its_parts_in_their_order() {
    let backend = Backend::start();
    let site = serving(&backend, SEARCH);
    let response = site.client().send(&search("/search?q=a%20%26b")).expect(200);
    assert_eq!(
        response.text(),
        "[before GET a &b me 1]found-a%20%26b[text][footer][after last asked]"
    );
}

#[test]
fn status_and_headers_come_from_the_first_script_alone() {
    let backend = Backend::start();
    let site = serving(&backend, SEARCH);
    let response = site.client().send(&search("/search?q=a")).expect(200);
    assert_eq!(response.header("x-before"), Some("yes"));
    assert_eq!(response.header("set-cookie"), Some("seen=yes"));
    assert!(response.header("content-type").unwrap().starts_with("text/html"));
    // The tag is that of a part; the page as a whole has none.
    for name in ["etag", "x-after", "x-upstream-secret"] {
        assert_eq!(response.header(name), None, "{name}");
    }
    let wire = site.exchange("GET /search?q=a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for leak in ["leaked", "test-backend", "HTTP/1.1 200 OK\r\nContent-Type: text/plain"] {
        assert!(!wire.contains(leak), "{leak} in\n{wire}");
    }
}

#[test]
fn trailers_codings_and_redirects_leave_a_plain_body() {
    let backend = Backend::start();
    let mut pages = String::new();
    let cases = [
        ("chunked", "from chunks"),
        ("gzip", "from a gzip body"),
        ("until-close", "until the end"),
        ("to/text/there", "there"),
        ("large/300000", &"x".repeat(300_000)),
    ];
    for (path, _) in &cases {
        pages += &format!(
            "[[app.site.compose]]\npath = \"/{path}\"\n\
             [[app.site.compose.part]]\nfetch = \"BACKEND/{path}\"\n"
        );
    }
    let site = serving(&backend, &pages);
    for (path, body) in cases {
        let response = site.client().get(&format!("/{path}")).expect(200).saying(body);
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(response.header("content-encoding"), None);
    }
}

#[test]
fn connections_to_an_upstream_are_used_again() {
    let backend = Backend::start();
    let page = "[[app.site.compose]]\npath = \"/page\"\n\
                [[app.site.compose.part]]\nfetch = \"BACKEND/number\"\n";
    let site = serving(&backend, page);
    let mut client = site.client();
    for number in 1..=20 {
        client.get("/page").expect(200).saying(&number.to_string());
    }
    assert_eq!(backend.connections(), 1);
    let upstream = &site.status()["upstream"];
    assert_eq!(upstream["requests"], 20, "{upstream}");
    assert_eq!(upstream["reused"], 19, "{upstream}");
    assert_eq!(upstream["connections"], 1, "{upstream}");
}

#[test]
fn parts_are_made_at_the_same_time() {
    let backend = Backend::start();
    let page = r#"
[app.site.pool]
min = 2
max = 2
[[app.site.compose]]
path = "/meeting"
[[app.site.compose.part]]
script = "/meets.php?backend=BACKEND&count=4&name=one"
[[app.site.compose.part]]
fetch = "BACKEND/meet/4/two"
[[app.site.compose.part]]
fetch = "BACKEND/meet/4/three"
[[app.site.compose.part]]
script = "/meets.php?backend=BACKEND&count=4&name=four"
"#;
    let site = serving(&backend, page);
    site.client().get("/meeting").expect(200).saying("[met one]met twomet three[met four]");
}

const HELD: &str = r#"
[app.site.pool]
min = 1
max = 1
[[app.site.compose]]
path = "/held"
[[app.site.compose.part]]
script = "/before.php"
[[app.site.compose.part]]
fetch = "BACKEND/held/one"
[[app.site.compose.part]]
script = "/after.php"
"#;

#[test]
fn no_worker_is_held_while_an_upstream_is_waited_for() {
    let backend = Backend::start();
    let site = serving(&backend, HELD);
    let mut waiting: Vec<Connection> = (0..20)
        .map(|_| {
            let mut connection = Connection::open(site.address());
            connection.send(&Request::get("/held").to_bytes("a")).unwrap();
            connection
        })
        .collect();
    // All twenty are at the upstream at once, and the only worker serves another client.
    backend.hears("/held/one", 20);
    site.client().get("/hello.php").expect(200).saying("hello");
    backend.release("one");
    for connection in &mut waiting {
        let response = connection.response().unwrap().expect(200);
        assert_eq!(response.text(), "[before GET - - 1]held one[after - -]");
    }
}

#[test]
fn parts_are_sent_as_soon_as_they_are_next() {
    let backend = Backend::start();
    let site = serving(&backend, HELD);
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get("/held").to_bytes("a")).unwrap();
    assert_eq!(connection.head().unwrap().status, 200);
    assert_eq!(connection.chunk().unwrap().unwrap(), b"[before GET - - 1]");
    backend.hears("/held/one", 1);
    backend.release("one");
    let mut rest = Vec::new();
    while let Some(chunk) = connection.chunk().unwrap() {
        rest.extend_from_slice(&chunk);
    }
    assert_eq!(rest, b"held one[after - -]");
}

#[test]
fn a_part_that_waits_begins_after_what_is_before_it() {
    let backend = Backend::start();
    let page = r#"
[[app.site.compose]]
path = "/page"
[[app.site.compose.part]]
script = "/before.php"
[[app.site.compose.part]]
fetch = "BACKEND/held/one"
[[app.site.compose.part]]
fetch = "BACKEND/text/two"
sequential = true
"#;
    let site = serving(&backend, page);
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get("/page").to_bytes("a")).unwrap();
    backend.hears("/held/one", 1);
    assert_eq!(backend.heard(), ["/held/one"]);
    backend.release("one");
    connection.response().unwrap().expect(200).saying("[before GET - - 1]held onetwo");
    assert_eq!(backend.heard(), ["/held/one", "/text/two"]);
}

#[test]
fn a_part_that_fails_is_replaced_skipped_or_fails_the_page() {
    let backend = Backend::start();
    let failures = [
        ("/status/500", "upstream_failed", 502),
        ("/status/404", "upstream_failed", 502),
        ("/reset", "upstream_failed", 502),
        ("/cut", "upstream_failed", 502),
        ("/both-lengths", "upstream_failed", 502),
        ("/loop", "upstream_failed", 502),
        ("/large/5000", "upstream_failed", 502),
        ("/silent", "upstream_timeout", 504),
    ];
    let mut pages = String::new();
    for (path, ..) in &failures {
        for (name, policy) in [
            ("replaced", "fallback = \"[instead]\""),
            ("skipped", "on_error = \"skip\""),
            ("failed", "on_error = \"fail\""),
        ] {
            pages += &format!(
                "[[app.site.compose]]\npath = \"/{name}{path}\"\n\
                 [[app.site.compose.part]]\nfetch = \"BACKEND{path}\"\n\
                 timeout = \"200ms\"\nmax_body = \"4 KiB\"\n{policy}\n\
                 [[app.site.compose.part]]\ntext = \"[end]\"\n"
            );
        }
    }
    let site = serving(&backend, &pages);
    let mut client = site.client();
    for (path, reason, status) in failures {
        client.get(&format!("/replaced{path}")).expect(200).saying("[instead][end]");
        client.get(&format!("/skipped{path}")).expect(200).saying("[end]");
        // What was streamed before it failed can only be broken off.
        if matches!(path, "/cut" | "/large/5000") {
            continue;
        }
        let response = client.get(&format!("/failed{path}")).expect(status);
        assert_eq!(response.header("x-outboard-reason"), Some(reason), "{path}");
    }
    let upstream = &site.status()["upstream"];
    for kind in ["protocol", "redirects", "too_large", "timeout"] {
        assert!(upstream["failures"][kind].as_u64() > Some(1), "{kind} in {upstream}");
    }
    site.logs(&["part ", "/status/500", "upstream_failed"]);
}

#[test]
fn an_upstream_that_is_not_there_is_a_failed_part() {
    let backend = Backend::start();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let page = format!(
        "[[app.site.compose]]\npath = \"/page\"\n\
         [[app.site.compose.part]]\nfetch = \"http://{nobody}/\"\n\
         [[app.site.compose]]\npath = \"/named\"\n\
         [[app.site.compose.part]]\nfetch = \"http://name.invalid/\"\nfallback = \"no name\"\n"
    );
    let site = serving(&backend, &page);
    let response = site.client().get("/page").expect(502);
    assert_eq!(response.header("x-outboard-reason"), Some("upstream_failed"));
    site.logs(&["no connection to", "refused"]);
    site.client().get("/named").expect(200).saying("no name");
}

#[test]
fn a_page_that_fails_after_its_beginning_is_broken_off() {
    let backend = Backend::start();
    let page = r#"
[[app.site.compose]]
path = "/page"
[[app.site.compose.part]]
text = "[begin]"
[[app.site.compose.part]]
fetch = "BACKEND/held/one"
[[app.site.compose.part]]
fetch = "BACKEND/status/500"
sequential = true
"#;
    let site = serving(&backend, page);
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get("/page").to_bytes("a")).unwrap();
    assert_eq!(connection.chunk_after_head(), b"[begin]");
    backend.release("one");
    while let Ok(chunk) = connection.chunk() {
        assert!(chunk.is_some(), "a failed page has an end");
    }
    site.logs(&["upstream_failed", "status 500"]);
}

/// Reads a head and the chunk behind it.
trait ChunkAfterHead {
    fn chunk_after_head(&mut self) -> Vec<u8>;
}

impl ChunkAfterHead for Connection {
    fn chunk_after_head(&mut self) -> Vec<u8> {
        assert_eq!(self.head().unwrap().status, 200);
        self.chunk().unwrap().unwrap()
    }
}

#[test]
fn a_script_that_does_not_want_the_page_is_the_answer() {
    let backend = Backend::start();
    let mut pages = String::new();
    for script in ["away", "refused"] {
        pages += &format!(
            "[[app.site.compose]]\npath = \"/{script}\"\n\
             [[app.site.compose.part]]\ntext = \"[nav]\"\n\
             [[app.site.compose.part]]\nscript = \"/{script}.php\"\n\
             [[app.site.compose.part]]\nfetch = \"BACKEND/silent\"\n"
        );
    }
    let site = serving(&backend, &pages);
    let response = site.client().send(&Request::get("/away")).expect(302).saying("go away");
    assert_eq!(response.header("location"), Some("/login"));
    site.client().get("/refused").expect(403).saying("not for you");
}

#[test]
fn a_script_that_dies_or_takes_too_long_is_a_failed_part() {
    let backend = Backend::start();
    let mut pages = String::new();
    for (name, script, policy) in [
        ("crash-first", "crash", ""),
        ("crash-replaced", "crash", "fallback = \"[instead]\""),
        ("stuck-first", "stuck", "timeout = \"100ms\""),
        ("stuck-replaced", "stuck", "timeout = \"100ms\"\nfallback = \"[instead]\""),
    ] {
        pages += &format!(
            "[[app.site.compose]]\npath = \"/{name}\"\n\
             [[app.site.compose.part]]\nscript = \"/{script}.php\"\n{policy}\n\
             [[app.site.compose.part]]\nscript = \"/after.php\"\n"
        );
    }
    pages += "[[app.site.compose]]\npath = \"/refused-later\"\n\
              [[app.site.compose.part]]\nscript = \"/before.php\"\n\
              [[app.site.compose.part]]\nscript = \"/refused.php\"\nfallback = \"[instead]\"\n";
    let site = serving(&backend, &pages);
    let reason = |response: Response| response.header("x-outboard-reason").unwrap().to_owned();
    let mut client = site.client();
    assert_eq!(reason(client.get("/crash-first").expect(502)), "worker_crashed");
    client.get("/crash-replaced").expect(200).saying("[instead][after - -]");
    assert_eq!(reason(client.get("/stuck-first").expect(504)), "part_timeout");
    client.get("/stuck-replaced").expect(200).saying("[instead][after - -]");
    let mut fresh = site.client();
    fresh.get("/refused-later").expect(200).saying("[before GET - - 1][instead]");
}

#[test]
fn headers_about_the_whole_page_are_not_sent_to_parts() {
    let backend = Backend::start();
    let page = "[[app.site.compose]]\npath = \"/page\"\n\
                [[app.site.compose.part]]\nscript = \"/headers.php\"\n";
    let site = serving(&backend, page);
    let request = Request::get("/page")
        .header("Range", "bytes=0-3")
        .header("If-None-Match", "\"x\"")
        .header("Accept-Encoding", "gzip")
        .header("X-Asked", "asked");
    site.client().send(&request).expect(200).saying("[- - - asked]");
}

#[test]
fn nothing_of_the_client_goes_to_an_upstream() {
    let backend = Backend::start();
    let page = "[[app.site.compose]]\npath = \"/page\"\n\
                [[app.site.compose.part]]\nfetch = \"BACKEND/echo?{query}\"\n\
                headers = { X-Key = \"of-the-site\" }\n";
    let site = serving(&backend, page);
    let request = Request::get("/page?a=1&b=%20")
        .header("Cookie", "secret=cookie")
        .header("Authorization", "Bearer secret");
    let response = site.client().send(&request).expect(200);
    let text = response.text();
    assert!(text.starts_with("GET /echo?a=1&b=%20 HTTP/1.1\r\nHost: 127.0.0.1:"), "{text}");
    assert!(text.contains("\r\nX-Key: of-the-site\r\n"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn head_has_the_page_s_head_and_post_is_refused() {
    let backend = Backend::start();
    let site = serving(&backend, SEARCH);
    let response = site.client().send(&Request::new("HEAD", "/search?q=a")).expect(200);
    assert_eq!(response.header("x-before"), Some("yes"));
    assert_eq!(backend.heard(), Vec::<String>::new());
    let response = site.client().send(&Request::post("/search", "text/plain", "x")).expect(405);
    assert_eq!(response.header("x-outboard-reason"), Some("method_not_allowed"));
}

#[test]
fn an_old_client_gets_the_page_until_the_connection_closes() {
    let backend = Backend::start();
    let site = serving(&backend, SEARCH);
    let wire = site.exchange("GET /search?q=a HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(!wire.to_lowercase().contains("transfer-encoding"), "{wire}");
    assert!(wire.ends_with("found-a[text][footer][after last -]"), "{wire}");
}

#[test]
fn a_page_that_is_there_at_once_has_its_length() {
    let backend = Backend::start();
    let page = "[[app.site.compose]]\npath = \"/page\"\n\
                [[app.site.compose.part]]\ntext = \"[text]\"\n\
                [[app.site.compose.part]]\nfile = \"/footer.html\"\n";
    let site = serving(&backend, page);
    site.client().get("/page").expect(200).saying("[text][footer]");
    // The file is in memory from then on.
    let response = site.client().get("/page").expect(200).saying("[text][footer]");
    assert_eq!(response.framing, Framing::Length);
}

#[test]
fn a_large_part_reaches_a_client_whole() {
    let backend = Backend::start();
    let page = "[[app.site.compose]]\npath = \"/page\"\n\
                [[app.site.compose.part]]\nscript = \"/large.php\"\n\
                [[app.site.compose.part]]\nfetch = \"BACKEND/large/5000000\"\n\
                [[app.site.compose.part]]\nscript = \"/large.php\"\nfallback = \"none\"\n";
    let site = serving(&backend, page);
    let response = site.client().get("/page").expect(200);
    let expected = ["y".repeat(3_000_000), "x".repeat(5_000_000), "y".repeat(3_000_000)].concat();
    assert!(response.text() == expected, "{} bytes", response.body.len());
}

#[test]
fn a_host_gets_no_more_requests_than_it_may() {
    let backend = Backend::start();
    let page = "[[app.site.compose]]\npath = \"/page\"\n\
                [[app.site.compose.part]]\nfetch = \"BACKEND/held/one\"\n";
    let tables = "[upstream]\nrequests = 2\nqueue_length = 1\nqueue_timeout = \"1m\"";
    let site = serving_with(&backend, page, tables);
    let open = || {
        let mut connection = Connection::open(site.address());
        connection.send(&Request::get("/page").to_bytes("a")).unwrap();
        connection
    };
    let mut answered = [open(), open()];
    backend.hears("/held/one", 2);
    // One of these two waits in the queue, and the other finds it full.
    let mut rest = [open(), open()];
    eventually("one is refused", || site.status()["upstream"]["failures"]["busy"] == 1);
    backend.release("one");
    let mut statuses: Vec<u16> = answered
        .iter_mut()
        .chain(&mut rest)
        .map(|connection| connection.response().unwrap().status)
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 503]);
    // A thread of the server uses its own connections again, not those of others.
    assert!((2..=3).contains(&backend.connections()));
}

#[test]
fn a_client_that_goes_ends_the_fetches_of_its_page() {
    let backend = Backend::start();
    let site = serving(&backend, HELD);
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get("/held").to_bytes("a")).unwrap();
    backend.hears("/held/one", 1);
    assert_eq!(site.status()["upstream"]["under_way"], 1);
    drop(connection);
    eventually("the fetches end", || site.status()["upstream"]["under_way"] == 0);
    site.client().get("/hello.php").expect(200);
}

#[test]
fn errors_in_pages_are_reported_with_their_place() {
    let docroot = Docroot::of("compose");
    let text = r#"listen = "127.0.0.1:0"
[app.site]
root = "www"
[[app.site.compose]]
path = "/a"
[[app.site.compose.part]]
script = "/missing.php"
[[app.site.compose.part]]
fetch = "http://{query:host}/"
[[app.site.compose.part]]
on_error = "skip"
[[app.site.compose]]
path = "/b"
[[app.site.compose.part]]
text = "a"
file = "/footer.html"
[[app.site.compose.part]]
text = "a"
on_error = "fallback"
[[app.site.compose]]
path = "/c"
[[app.site.compose.part]]
script = "/before.php"
sequential = true
"#;
    let file = docroot.beside().file("outboard.toml", text);
    let output = std::process::Command::new(outboard_e2e::Server::binary())
        .arg("check")
        .arg(file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    for line in [
        ":7:10: there is no file",
        ":9:9: `fetch`: the host cannot depend on the request",
        ":10:1: the part has no source",
        ":14:1: the part has several sources",
        ":19:12: `fallback` is missing",
        ":24:14: the first script cannot be sequential",
    ] {
        assert!(said.contains(line), "{line} in\n{said}");
    }
}
