//! `Outboard\fetch()`: the gateway makes the request, over connections that it keeps.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Certificate, Child, Configured, Connection, Docroot, Launch, Request, Scratch,
    eventually,
};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::PathBuf;

fn serving(tables: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n{tables}\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
         [app.site.worker]\nconcurrency = 100\n[app.site.pool]\nmin = 1\nmax = 1\n"
    );
    Configured::start(Docroot::of("fetch"), &text)
}

fn target(url: &str, options: Value) -> String {
    let options = options.to_string();
    let encoded: String = options.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("/?url={url}&options={encoded}")
}

#[track_caller]
fn fetch(site: &Configured, url: &str, options: Value) -> Value {
    let response = site.client().send(&Request::get(&target(url, options))).expect(200);
    serde_json::from_slice(&response.body).unwrap_or_else(|_| panic!("{}", response.text()))
}

#[test]
fn an_answer_comes_whole_with_its_head() {
    let backend = Backend::start();
    let site = serving("");
    let answer = fetch(&site, &format!("{}/text/words", backend.url()), json!({}));
    assert_eq!(answer["status"], 200);
    assert_eq!(answer["body"], "words");
    assert_eq!(answer["headers"]["x-upstream-secret"], json!(["leaked"]));
    for (path, body) in [
        ("/chunked", "from chunks"),
        ("/gzip", "from a gzip body"),
        ("/until-close", "until the end"),
        ("/to/text/there", "there"),
    ] {
        let answer = fetch(&site, &format!("{}{path}", backend.url()), json!({}));
        assert_eq!(answer["body"], body, "{path}");
    }
    let answer = fetch(&site, &format!("{}/status/404", backend.url()), json!({}));
    assert_eq!(
        (&answer["status"], &answer["body"]),
        (&json!(404), &json!("a body of the upstream"))
    );
}

/// An application that fetches its visitors' URLs leads them nowhere but to servers.
#[test]
fn a_url_reaches_neither_the_entity_store_nor_rate_limits() {
    let site = serving("[kv]\ndata_dir = \"entities\"\ndurability = \"memory\"\n");
    let scan = json!({"method": "POST", "body": "\u{3}\0\0\u{1}\0\0\0\0\0\0\0\0\0\0"});
    for url in [
        "entities:default",
        "ENTITIES:default",
        "rates:mail",
        "file:///etc/passwd",
        "ftp://h/",
        "//h/",
    ] {
        let refused = fetch(&site, url, scan.clone());
        assert_eq!(refused["reason"], "bad_call", "{url}: {refused}");
    }
}

/// One app's requests, to however many servers, leave connections for the others.
#[test]
fn an_app_has_so_many_requests_under_way_and_then_is_refused() {
    let backends = [(); 4].map(|()| Backend::start());
    let site = serving("[upstream]\nrequests_per_app = 3");
    let mut held = Vec::new();
    for backend in &backends[..3] {
        let mut client = Connection::open(site.address());
        let url = format!("{}/held/a", backend.url());
        client.send(&Request::get(&target(&url, json!({}))).to_bytes("a")).unwrap();
        backend.hears("/held/a", 1);
        held.push(client);
    }
    let refused = fetch(&site, &format!("{}/text/a", backends[3].url()), json!({}));
    assert_eq!(refused["reason"], "busy", "{refused}");
    for (backend, mut client) in backends.iter().zip(held) {
        backend.release("a");
        assert!(client.response().unwrap().expect(200).text().contains("held a"));
    }
    let answer = fetch(&site, &format!("{}/text/a", backends[3].url()), json!({}));
    assert_eq!(answer["body"], "a");
}

#[test]
fn a_script_may_wait_before_it_takes_requests() {
    let backend = Backend::start();
    for concurrency in [1, 100] {
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
             [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
             [app.site.worker]\nscript = \"www/boot.php\"\nconcurrency = {concurrency}\n\
             [app.site.php]\nenv = {{ BACKEND = \"{}\" }}\n",
            backend.url()
        );
        let site = Configured::start(Docroot::of("fetch"), &text);
        let answer = site.client().get("/").expect(200).text();
        assert_eq!(answer, "found and waited at boot", "{concurrency}");
    }
}

#[test]
fn large_bodies_pass_through_the_ring_both_ways() {
    let backend = Backend::start();
    let site = serving("");
    let answer = fetch(&site, &format!("{}/large/3000000", backend.url()), json!({}));
    assert_eq!(answer["length"], 3_000_000);
    let url = format!("{}/echo", backend.url());
    let options = json!({ "method": "POST", "headers": { "X-A": "1" } });
    let request = Request::get(&format!("{}&send=400000", target(&url, options)));
    let response = site.client().send(&request).expect(200);
    let answer: Value = serde_json::from_slice(&response.body).unwrap();
    let head = answer["body"].as_str().unwrap();
    assert!(head.starts_with("POST /echo HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nX-A: 1\r\n") && head.contains("\r\nContent-Length: 400000\r\n"));
    let sent = answer["length"].as_u64().unwrap() as usize - head.find("\r\n\r\n").unwrap() - 4;
    assert_eq!(sent, 400_000);
}

#[test]
fn failures_have_their_reason() {
    let backend = Backend::start();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = serving("");
    let of_backend = |path: &str| format!("{}{path}", backend.url());
    for (url, options, reason) in [
        (format!("http://{nobody}/"), json!({}), "connect"),
        ("http://name.invalid/".to_owned(), json!({}), "resolve"),
        ("ftp://a/".to_owned(), json!({}), "bad_call"),
        (of_backend("/silent"), json!({ "timeout": 0.1 }), "timeout"),
        (of_backend("/loop"), json!({}), "redirects"),
        (of_backend("/cut"), json!({}), "protocol"),
        (of_backend("/reset"), json!({}), "protocol"),
        (of_backend("/both-lengths"), json!({}), "protocol"),
        (of_backend("/large/5000"), json!({ "max_body_bytes": 4999 }), "too_large"),
    ] {
        let answer = fetch(&site, &url, options);
        assert_eq!(answer["reason"], reason, "{url}: {answer}");
    }
}

#[test]
fn requests_of_one_worker_wait_concurrently_on_pooled_sockets() {
    let backend = Backend::start();
    let site = serving("");
    let url = format!("{}/meet/30/all", backend.url());
    let mut connections: Vec<Connection> = (0..30)
        .map(|_| {
            let mut connection = Connection::open(site.address());
            connection.send(&Request::get(&target(&url, json!({}))).to_bytes("a")).unwrap();
            connection
        })
        .collect();
    for connection in &mut connections {
        connection.response().unwrap().expect(200).holding("met all");
    }
    assert_eq!(backend.connections(), 30);
    for _ in 0..30 {
        fetch(&site, &format!("{}/text/again", backend.url()), json!({}));
    }
    assert_eq!(backend.connections(), 30);
}

#[test]
fn a_client_that_goes_or_a_worker_that_dies_ends_the_fetch() {
    let backend = Backend::start();
    let site = serving("");
    let url = format!("{}/silent", backend.url());
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get(&target(&url, json!({}))).to_bytes("a")).unwrap();
    backend.hears("/silent", 1);
    assert_eq!(site.status()["upstream"]["under_way"], 1);
    let worker = site.status()["pools"][0]["workers"][0]["pid"].as_i64().unwrap() as i32;
    let pid = rustix::process::Pid::from_raw(worker).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    connection.response().unwrap().expect(502);
    eventually("the fetch ends", || site.status()["upstream"]["under_way"] == 0);
    let answer = fetch(&site, &format!("{}/text/alive", backend.url()), json!({}));
    assert_eq!(answer["body"], "alive");
}

/// nginx with a certificate of its own; it says which request of its connection it answers.
struct Nginx {
    _child: Child,
    port: u16,
    certificate: PathBuf,
    _scratch: Scratch,
}

impl Nginx {
    fn start(listen: &str) -> Nginx {
        let scratch = Scratch::new("nginx");
        let made = Certificate::make(scratch.path(), "localhost", "DNS:localhost");
        let (certificate, key) = (made.chain, made.key);
        for _ in 0..10 {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);
            let folder = scratch.path().display();
            let configuration = format!(
                "daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr notice;\n\
                 events {{ worker_connections 256; }}\n\
                 http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
                 fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
                 server {{ listen 127.0.0.1:{port} {listen}; server_name localhost;\n\
                 ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {}; ssl_certificate_key {};\n\
                 location / {{ return 200 \"$server_protocol $ssl_protocol $connection_requests\"; }} }} }}\n",
                certificate.display(),
                key.display(),
            );
            let child = Launch::new("/usr/sbin/nginx")
                .arg("-e")
                .arg("stderr")
                .arg("-c")
                .arg(scratch.file("nginx.conf", configuration))
                .start();
            match child.wait_for(|line| line.contains("start worker process ").then_some(())) {
                Ok(()) => return Nginx { _child: child, port, certificate, _scratch: scratch },
                Err(output) if output.contains("Address already in use") => continue,
                Err(output) => panic!("nginx does not start: {output}"),
            }
        }
        panic!("nginx found every port in use");
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.port)
    }

    fn trusted(&self) -> String {
        format!("[upstream]\nca = {:?}", self.certificate)
    }
}

#[test]
fn https_connections_are_checked_and_kept() {
    let nginx = Nginx::start("ssl");
    let site = serving(&nginx.trusted());
    for number in 1..=5 {
        let answer = fetch(&site, &nginx.url("localhost"), json!({}));
        assert_eq!(answer["body"], format!("HTTP/1.1 TLSv1.3 {number}"), "{answer}");
    }
}

#[test]
fn an_untrusted_certificate_is_rejected_by_default() {
    let nginx = Nginx::start("ssl");
    let site = serving("");
    let answer = fetch(&site, &nginx.url("localhost"), json!({}));
    assert_eq!(answer["reason"], "tls", "{answer}");
    let answer = fetch(&site, &nginx.url("localhost"), json!({ "verify": false }));
    assert_eq!(answer["body"], "HTTP/1.1 TLSv1.3 1", "{answer}");
    // A connection that nobody checked is not used by those who want it checked.
    let answer = fetch(&site, &nginx.url("localhost"), json!({}));
    assert_eq!(answer["reason"], "tls", "{answer}");
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let nginx = Nginx::start("ssl");
    let site = serving(&nginx.trusted());
    let answer = fetch(&site, &nginx.url("127.0.0.1"), json!({}));
    assert_eq!(answer["reason"], "tls", "{answer}");
}

#[test]
fn http2_is_negotiated_and_shares_one_connection() {
    let nginx = Nginx::start("ssl http2");
    let site = serving(&nginx.trusted());
    let connections: Vec<Connection> = (0..20)
        .map(|_| {
            let mut connection = Connection::open(site.address());
            let request = Request::get(&target(&nginx.url("localhost"), json!({})));
            connection.send(&request.to_bytes("a")).unwrap();
            connection
        })
        .collect();
    for mut connection in connections {
        let response = connection.response().unwrap().expect(200);
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert!(answer["body"].as_str().unwrap().starts_with("HTTP/2.0 TLSv1.3 "), "{answer}");
        assert_eq!(answer["protocol"], "2", "{answer}");
    }
    assert_eq!(site.status()["upstream"]["connections"], 1);
    let answer = fetch(&site, &nginx.url("localhost"), json!({ "http2": false }));
    assert!(answer["body"].as_str().unwrap().starts_with("HTTP/1.1 "), "{answer}");
    // More than the windows of a stream and of the connection.
    let request = target(&nginx.url("localhost"), json!({ "method": "POST" })) + "&send=900000";
    let response = site.client().send(&Request::get(&request)).expect(200);
    response.holding("HTTP\\/2.0 TLSv1.3");
}
