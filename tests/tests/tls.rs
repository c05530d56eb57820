//! TLS on the gateway's own listeners, and HTTP/2 over it, as curl and openssl see them.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Certificate, Configured, Docroot, Fifo, Request, accept, connect, eventually,
    read_to_any_end,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

/// Bytes of `large.php` and `large.txt`.
const LARGE: usize = 2_000_000;

/// A server with certificates for `one.test` and for what is below `two.test`.
struct Site {
    site: Configured,
    one: Certificate,
    two: Certificate,
}

impl Site {
    fn serving(tables: &str) -> Site {
        let docroot = Docroot::of("tls");
        let folder = docroot.beside().path().to_owned();
        let one = Certificate::make(&folder, "one", "DNS:one.test");
        let two = Certificate::make(&folder, "two", "DNS:*.two.test");
        let site = Configured::start(docroot, &Site::text(tables));
        Site { site, one, two }
    }

    fn text(tables: &str) -> String {
        let certificates = "tls = [{ certificate = \"one.pem\", key = \"one.key\" }, \
                            { certificate = \"two.pem\", key = \"two.key\" }]";
        let listen = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nredirect_to_https = true\n\
             [[listen]]\naddress = \"127.0.0.2:0\"\n{certificates}\n"
        );
        let text = Configured::text(tables);
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        // Tables come behind the keys of the file itself.
        format!("{rest}{listen}")
    }

    /// Where TLS is spoken.
    fn port(&self) -> u16 {
        let url = &self.site.listeners()[1];
        assert!(url.starts_with("https://127.0.0.2:"), "{url}");
        url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Asks as this host, trusting this certificate alone.
    fn curl(&self, trusted: &Certificate, host: &str, more: &[&str]) -> Output {
        let to = format!("{host}:443:127.0.0.2:{}", self.port());
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--connect-to", &to, "--cacert"]).arg(&trusted.chain).args(more);
        curl.output().expect("curl is there")
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let output = self.curl(&self.one, "one.test", &[&format!("https://one.test{path}")]);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    /// A connection whose bytes go through TLS.
    fn wire(&self) -> Secure {
        let address = format!("127.0.0.2:{}", self.port());
        let child = Command::new("openssl")
            .args(["s_client", "-quiet", "-connect", &address, "-servername", "one.test"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is there");
        Secure(child)
    }
}

/// The client of a connection with TLS; its input and output are what is inside.
struct Secure(Child);

impl Secure {
    fn send(&mut self, bytes: &[u8]) {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        bytes
    }

    fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.read(1));
        }
        String::from_utf8(head).unwrap()
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn scripts_know_that_it_is_https() {
    let site = Site::serving("");
    let printed = String::from_utf8(site.get("/server.php")).unwrap();
    let port = site.port();
    let expected =
        format!("HTTPS=on\nREQUEST_SCHEME=https\nSERVER_NAME=one.test\nSERVER_PORT={port}\n");
    assert_eq!(printed, expected);
}

#[test]
fn large_bodies_arrive_as_they_are_both_ways() {
    let site = Site::serving("");
    let lines: String = (0..LARGE / 10).map(|line| format!("{line:09}\n")).collect();
    site.site.docroot().put("large.txt", &lines);
    assert!(site.get("/large.php") == lines.as_bytes());
    assert!(site.get("/large.txt") == lines.as_bytes());
    let file = site.site.docroot().beside().path().join("www/large.txt");
    let data = format!("@{}", file.display());
    let url = "https://one.test/length.php";
    let output = site.curl(&site.one, "one.test", &["--data-binary", &data, url]);
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.starts_with(&format!("{LARGE} ")), "{answer}");
    let range = site.curl(&site.one, "one.test", &["-r", "20-29", "https://one.test/large.txt"]);
    assert_eq!(range.stdout, b"000000002\n");
}

#[test]
fn a_client_that_reads_slowly_gets_all() {
    let site = Site::serving("");
    let mut wire = site.wire();
    wire.send(b"GET /large.php HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n");
    assert!(wire.head().starts_with("HTTP/1.1 200 OK\r\n"));
    // Nobody reads meanwhile: the answer waits in the gateway.
    assert_eq!(site.get("/length.php"), b"0 d41d8cd98f00b204e9800998ecf8427e\n");
    let mut rest = Vec::new();
    wire.0.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
    assert!(rest.windows(11).any(|end| end == b"\n000199999\n"), "{}", rest.len());
}

#[test]
fn requests_share_a_connection_and_come_in_any_pieces() {
    let site = Site::serving("");
    let mut wire = site.wire();
    for _ in 0..3 {
        wire.send(b"GET /server.php HT");
        wire.send(b"TP/1.1\r\nHost: one.test\r\n\r\n");
        let head = wire.head();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(!head.contains("Connection: close"), "{head}");
        let length = head.split("Content-Length: ").nth(1).expect("its length");
        let length = length.lines().next().unwrap().parse().unwrap();
        assert!(wire.read(length).starts_with(b"HTTPS=on\n"));
    }
    // Two at once: the second is in the session already when the first is answered.
    wire.send(&b"GET /none HTTP/1.1\r\nHost: one.test\r\n\r\n".repeat(2));
    for _ in 0..2 {
        let head = wire.head();
        assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
        let length = head.split("Content-Length: ").nth(1).expect("its length");
        wire.read(length.lines().next().unwrap().parse().unwrap());
    }
}

#[test]
fn the_server_name_selects_the_certificate() {
    let site = Site::serving("");
    let ok = |trusted, host: &str| {
        let url = format!("https://{host}/server.php");
        site.curl(trusted, host, &[&url]).status.code()
    };
    assert_eq!(ok(&site.one, "one.test"), Some(0));
    assert_eq!(ok(&site.two, "a.two.test"), Some(0));
    // Not trusted, of another name: curl's exit codes say which.
    assert_eq!(ok(&site.two, "one.test"), Some(60));
    assert_eq!(ok(&site.two, "a.b.two.test"), Some(60));
    assert_eq!(ok(&site.one, "other.test"), Some(60));
}

#[test]
fn a_host_of_another_certificate_is_a_421() {
    let site = Site::serving("");
    let asked = |name: &str, host: &str, version: &str| {
        let to = format!("{name}:443:127.0.0.2:{}", site.port());
        let (host, url) = (format!("Host: {host}"), format!("https://{name}/protocol.php"));
        let output = Command::new("curl")
            .args(["-sSk", version, "--connect-to", &to, "-H", &host, "-o", "/dev/null"])
            .args(["-w", "%{http_code}", &url])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for version in ["--http1.1", "--http2"] {
        for (sni, host, status) in [
            ("one.test", "one.test", "200"),
            ("one.test", "a.two.test", "421"),
            ("one.test", "A.TWO.test:443", "421"),
            ("a.two.test", "one.test", "421"),
            // One certificate is for both.
            ("a.two.test", "b.two.test", "200"),
            // No certificate is for it, or nobody asked for a name.
            ("one.test", "other.test", "200"),
            ("one.test", "a.b.two.test", "200"),
            ("127.0.0.2", "a.two.test", "200"),
        ] {
            assert_eq!(asked(sni, host, version), status, "{version} {sni} {host}");
        }
    }
}

#[test]
fn an_invalid_tls_record_gets_an_alert_and_nothing_else() {
    let site = Site::serving("");
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay.local_addr().unwrap().to_string();
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address, "-servername", "one.test"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is there");
    let mut near = accept(&relay);
    let mut far = connect(("127.0.0.2", site.port()));
    let (mut from_client, mut to_server) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let (forwarded, pieces) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while let Ok(count @ 1..) = from_client.read(&mut bytes) {
            if to_server.write_all(&bytes[..count]).is_err() {
                return;
            }
            let _ = forwarded.send(());
        }
    });
    let mut from_server = far.try_clone().unwrap();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut near);
        let _ = near.shutdown(std::net::Shutdown::Both);
    });
    let mut send = |bytes: &[u8]| {
        let input = client.stdin.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    };
    send(b"GET /none HTTP/1.1\r\nHost: one.test\r\n\r\n");
    let mut answer = [0; 12];
    client.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
    while pieces.try_recv().is_ok() {}
    // The beginning of a request, and then a record of nobody's.
    send(b"GET / HT");
    pieces.recv_timeout(std::time::Duration::from_secs(60)).expect("the client sends the request");
    far.write_all(&[&[23, 3, 3, 0, 32][..], &[0; 32]].concat()).unwrap();
    let output = client.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("SSL alert number 20"), "{printed}");
    let rest = String::from_utf8_lossy(&output.stdout);
    assert!(!rest.contains("HTTP/1.1"), "{rest}");
}

#[test]
fn a_reload_loads_the_new_certificate_unless_it_is_invalid() {
    let site = Site::serving("");
    let folder = site.site.docroot().beside().path().to_owned();
    let mut kept = site.wire();
    kept.send(b"GET /none HTTP/1.1\r\nHost: one.test\r\n\r\n");
    assert!(kept.head().starts_with("HTTP/1.1 404 "));
    let old = std::fs::read(&site.one.chain).unwrap();
    let new = Certificate::make(&folder, "one", "DNS:one.test");
    let outcome = site.site.command("reload", &[]);
    assert!(outcome.status.success(), "{outcome:?}");
    let trusted = |chain: &[u8]| {
        let file = site.site.docroot().beside().file("trusted.pem", chain);
        let trusted = Certificate { chain: file, key: new.key.clone() };
        site.curl(&trusted, "one.test", &["https://one.test/server.php"]).status.code()
    };
    assert_eq!(trusted(&old), Some(60));
    let now = std::fs::read(&new.chain).unwrap();
    assert_eq!(trusted(&now), Some(0));
    // A key of another certificate.
    std::fs::copy(&site.two.key, &new.key).unwrap();
    let outcome = site.site.command("reload", &[]);
    let words = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(!outcome.status.success() && words.contains("one.key"), "{words}");
    assert_eq!(trusted(&now), Some(0));
}

#[test]
fn plain_http_to_a_tls_port_is_400_with_a_hint() {
    let site = Site::serving("");
    let mut stream = connect(("127.0.0.2", site.port()));
    stream.write_all(b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n").unwrap();
    // The request was not read, so that the end can be a reset.
    let answer = String::from_utf8(read_to_any_end(&mut stream)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
}

#[test]
fn a_silent_client_is_disconnected() {
    let site = Site::serving("[limits]\nheader_timeout = \"300ms\"");
    for begun in [&b""[..], &[22, 3, 1]] {
        let mut stream = connect(("127.0.0.2", site.port()));
        stream.write_all(begun).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        // Nothing, or an alert (RFC 8446 6).
        assert!(rest.first().is_none_or(|kind| *kind == 21), "{rest:?}");
    }
}

#[test]
fn no_redirect_leads_to_an_unknown_host() {
    let site = Site::serving("");
    let text = Site::text("").replace("[app.site]\n", "[app.site]\nhosts = [\"one.test\"]\n");
    site.site.rewrite(&text);
    assert!(site.site.command("reload", &[]).status.success());
    for (host, status) in [("one.test", 308), ("ONE.test", 308), ("evil.test", 404)] {
        let request = Request::get("/server.php").header("Host", host);
        site.site.client().send(&request).expect(status);
    }
}

#[test]
fn clients_without_tls_are_sent_to_it() {
    let site = Site::serving("");
    let answer = site.site.client().get("/a%20b?c=d").expect(308);
    let port = site.port();
    let location = format!("https://127.0.0.1:{port}/a%20b?c=d");
    assert_eq!(answer.header("location"), Some(&*location));
    site.site.docroot().put(".well-known/acme-challenge/token", "of the authority");
    let token = "/.well-known/acme-challenge/token";
    site.site.client().get(token).expect(200).saying("of the authority");
}

/// Has curl ask for an answer that breaks off, and then for another; exit code and output.
fn with_a_broken_answer(site: &Site, more: &[&str]) -> (Option<i32>, String) {
    let folder = site.site.docroot().beside().path();
    let mut gate = Fifo::at(folder.join("gate"));
    let to = format!("one.test:443:127.0.0.2:{}", site.port());
    let mut curl = Command::new("curl")
        .args(["-sS", "-N", "--connect-to", &to, "--cacert"])
        .arg(&site.one.chain)
        .args(more)
        .arg(format!("https://one.test/dies.php?gate={}", gate.path().display()))
        .arg("https://one.test/server.php")
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl is there");
    let mut output = curl.stdout.take().unwrap();
    let mut printed = vec![0; 13];
    output.read_exact(&mut printed).unwrap();
    assert_eq!(printed, b"the beginning");
    gate.open();
    output.read_to_end(&mut printed).unwrap();
    (curl.wait().unwrap().code(), String::from_utf8(printed).unwrap())
}

#[test]
fn an_answer_that_is_not_whole_is_known_for_one() {
    let site = Site::serving("");
    let (code, printed) = with_a_broken_answer(&site, &["--http1.1", "--fail-early"]);
    assert!(code != Some(0) && !printed.contains("HTTPS"), "{code:?} {printed}");
}

#[test]
fn websockets_go_through() {
    let backend = Backend::start();
    let url = backend.url();
    let site =
        Site::serving(&format!("[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{url}\"\n"));
    let mut wire = site.wire();
    wire.send(
        b"GET /switch HTTP/1.1\r\nHost: one.test\r\nConnection: Upgrade\r\n\
          Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    assert!(wire.head().starts_with("HTTP/1.1 101 "));
    assert_eq!(wire.read(6), b"hello ");
    for word in ["one", "two", "three"] {
        wire.send(word.as_bytes());
        assert_eq!(wire.read(word.len()), word.as_bytes());
    }
}

#[test]
fn http2_is_chosen_by_clients_that_speak_it_and_scripts_know() {
    let site = Site::serving("");
    let ask = |more: &[&str]| {
        let url = "https://one.test/protocol.php";
        let output =
            site.curl(&site.one, "one.test", &[more, &["-w", "%{http_version}", url]].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&[]), "HTTP/2.0 one.test https\n2");
    assert_eq!(ask(&["--http1.1"]), "HTTP/1.1 one.test https\n1.1");
}

#[test]
fn many_requests_share_an_http2_connection() {
    let site = Site::serving("");
    let lines: String = (0..LARGE / 10).map(|line| format!("{line:09}\n")).collect();
    site.site.docroot().put("large.txt", &lines);
    let urls = "https://one.test/{large.txt,large.php,server.php,large.txt,large.php,none}";
    let output = site.curl(
        &site.one,
        "one.test",
        &[
            "--parallel",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{size_download} %{num_connects}\n",
            urls,
        ],
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut rows: Vec<&str> = printed.lines().collect();
    rows.sort_unstable();
    let large = rows.iter().filter(|row| row.starts_with("200 2000000 ")).count();
    assert_eq!((rows.len(), large), (6, 4), "{printed}");
    let connects = rows.iter().filter(|row| row.ends_with(" 1")).count();
    assert_eq!(connects, 1, "{printed}");
}

#[test]
fn an_http2_upload_arrives_whole_with_a_length_and_without() {
    let site = Site::serving("");
    let body: String = (0..LARGE / 10).map(|line| format!("{line:09}\n")).collect();
    let file = site.site.docroot().beside().file("body.txt", &body);
    let md5 = Command::new("md5sum").arg(&file).output().unwrap().stdout;
    let md5 = String::from_utf8(md5).unwrap();
    let expected = format!("{LARGE} {}\n", md5.split_whitespace().next().unwrap());
    let data = format!("@{}", file.display());
    let url = "https://one.test/length.php";
    let known = site.curl(&site.one, "one.test", &["--data-binary", &data, url]);
    assert_eq!(String::from_utf8(known.stdout).unwrap(), expected);
    let unknown = ["-X", "POST", "-H", "Content-Length:", "--data-binary", &data, url];
    let unknown = site.curl(&site.one, "one.test", &unknown);
    assert_eq!(String::from_utf8(unknown.stdout).unwrap(), expected);
}

#[test]
fn an_http2_answer_that_is_not_whole_is_reset_and_others_go_on() {
    let site = Site::serving("");
    let (_, printed) = with_a_broken_answer(&site, &["-w", "%{http_version} %{exitcode}\n"]);
    let (broken, next) = printed.split_once('\n').unwrap();
    assert!(broken.starts_with("the beginning2 ") && !broken.ends_with(" 0"), "{printed}");
    assert!(next.starts_with("HTTPS=on\n") && next.ends_with("2 0\n"), "{printed}");
}

#[test]
fn a_reset_http2_stream_ends_its_script() {
    let site = Site::serving("");
    let folder = site.site.docroot().beside().path().to_owned();
    let mut gate = Fifo::at(folder.join("gate"));
    let url = format!("https://one.test/noticed.php?say={}", gate.path().display());
    let to = format!("one.test:443:127.0.0.2:{}", site.port());
    let mut curl = Command::new("curl")
        .args(["-sS", "-N", "--connect-to", &to, "--cacert"])
        .arg(&site.one.chain)
        .arg(url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    curl.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    curl.kill().unwrap();
    curl.wait().unwrap();
    assert_eq!(gate.hear(), "noticed");
}

#[test]
fn http2_cookies_are_one_field_again() {
    let site = Site::serving("");
    let url = "https://one.test/cookies.php";
    let output = site.curl(&site.one, "one.test", &["-b", "a=1; b=2; c=3", url]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a=1; b=2; c=3|1|2|3\n");
}

#[test]
fn a_stopping_server_sends_http2_clients_what_they_read_slowly() {
    let site = Site::serving("");
    let file = site.site.docroot().beside().path().join("www/sparse.bin");
    std::fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
    let to = format!("one.test:443:127.0.0.2:{}", site.port());
    let mut curl = Command::new("curl")
        .args(["-sS", "-N", "--http2", "--limit-rate", "4M", "--connect-to", &to, "--cacert"])
        .arg(&site.one.chain)
        .arg("https://one.test/sparse.bin")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = curl.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let stopping = std::thread::spawn(move || site.site.into_stopped());
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert!(curl.wait().unwrap().success());
    assert_eq!(rest.len() + 1, 8 << 20);
    stopping.join().unwrap();
}

/// A client that is stopped takes neither the answer nor that it is over.
#[test]
fn an_http2_client_that_takes_nothing_does_not_stay() {
    let site = Site::serving("[limits]\nwrite_timeout = \"300ms\"\nidle_timeout = \"300ms\"");
    let file = site.site.docroot().beside().path().join("www/sparse.bin");
    std::fs::File::create(&file).unwrap().set_len(256 << 20).unwrap();
    let to = format!("one.test:443:127.0.0.2:{}", site.port());
    let mut curl = Command::new("curl")
        .args(["-sS", "-N", "--connect-to", &to, "--cacert"])
        .arg(&site.one.chain)
        .arg("https://one.test/sparse.bin")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It writes to a pipe that nobody reads on, and is blocked by that.
    curl.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let connections = || site.site.status()["connections"].as_u64().expect("a number");
    eventually("the connection is closed", || connections() <= 1);
    curl.kill().unwrap();
    curl.wait().unwrap();
}
