//! Requests in early data (RFC 8446 2.3, RFC 8470), by clients that decide when they complete the handshake.

#![forbid(unsafe_code)]

use outboard_e2e::{Backend, Certificate, Configured, Docroot, Scratch};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
/// So many connections reach both threads, as good as certainly.
const CONNECTIONS: usize = 16;

struct Site {
    site: Configured,
    certificate: Certificate,
    _backend: Backend,
}

impl Site {
    fn serving(more: &str) -> Site {
        let docroot = Docroot::of("tls");
        let names = "IP:127.0.0.1,DNS:localhost";
        let certificate = Certificate::make(docroot.beside().path(), "one", names);
        let backend = Backend::start();
        let text = Configured::text(&format!(
            "[[app.site.proxy]]\npath = \"/echo\"\nupstream = \"{0}\"\n\
             [[app.site.proxy]]\npath = \"/status/**\"\nupstream = \"{0}\"",
            backend.url()
        ));
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        let text = format!(
            "threads = 2\n{rest}[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n\
             tls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n{more}\n"
        );
        Site { site: Configured::start(docroot, &text), certificate, _backend: backend }
    }

    fn address(&self) -> SocketAddr {
        let url = self.site.listeners()[0].clone();
        let address = url.strip_prefix("https://").expect("it has certificates");
        address.trim_end_matches('/').parse().expect("an address")
    }

    /// The settings of a client that has tickets of this server.
    fn client(&self, protocol: &str) -> Arc<ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        let chain = CertificateDer::from_pem_file(&self.certificate.chain).expect("a certificate");
        roots.add(chain).expect("a certificate");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.3");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.enable_early_data = true;
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let config = Arc::new(config);
        let mut first = Early::connect(self, &config, b"");
        first.complete();
        first.send(b"GET /early.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
        first.receive(|received| !received.is_empty());
        config
    }
}

/// A connection whose early data is sent with the first flight.
struct Early {
    tls: ClientConnection,
    socket: TcpStream,
    received: Vec<u8>,
    /// What is withheld: the end of the handshake.
    is_held: bool,
}

impl Early {
    fn connect(site: &Site, config: &Arc<ClientConfig>, early: &[u8]) -> Early {
        let name = "localhost".try_into().expect("a name");
        let mut tls = ClientConnection::new(config.clone(), name).expect("valid settings");
        if !early.is_empty() {
            let mut writer = tls.early_data().expect("there is a ticket for early data");
            writer.write_all(early).expect("there is room");
        }
        let mut socket = TcpStream::connect(site.address()).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
        while tls.wants_write() {
            tls.write_tls(&mut socket).expect("it is open");
        }
        Early { tls, socket, received: Vec::new(), is_held: true }
    }

    /// Receives until something is so; false at the end of the connection.
    fn receive(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> bool {
        loop {
            if !self.is_held {
                while self.tls.wants_write() {
                    let _ = self.tls.write_tls(&mut self.socket).expect("it is open");
                }
            }
            let mut piece = [0; 4096];
            match self.tls.reader().read(&mut piece) {
                Ok(0) => return false,
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(_) => {
                    if is_enough(&self.received) {
                        return true;
                    }
                    if self.tls.read_tls(&mut self.socket).expect("not within PATIENCE") == 0 {
                        return false;
                    }
                    self.tls.process_new_packets().expect("TLS");
                }
            }
        }
    }

    /// The response, whose body ends with a line end.
    fn response(&mut self) -> String {
        self.receive(|received| {
            let text = String::from_utf8_lossy(received).into_owned();
            text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.ends_with('\n'))
        });
        String::from_utf8(std::mem::take(&mut self.received)).expect("text")
    }

    /// Completes the handshake.
    fn complete(&mut self) {
        self.is_held = false;
        while self.tls.is_handshaking() {
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.socket).expect("it is open");
            }
            if self.tls.is_handshaking() {
                assert!(self.tls.read_tls(&mut self.socket).expect("not within PATIENCE") > 0);
                self.tls.process_new_packets().expect("TLS");
            }
        }
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).expect("it is open");
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).expect("there is room");
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).expect("it is open");
        }
    }
}

fn request(method: &str, path: &str, more: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n").into_bytes()
}

#[test]
fn a_safe_request_is_served_before_the_handshake_is_complete() {
    let site = Site::serving("early_data = true");
    let config = site.client("http/1.1");
    for _ in 0..CONNECTIONS {
        // Whatever the client claims, it is early.
        let early = request("GET", "/early.php", "Early-Data: 0\r\n");
        let mut client = Early::connect(&site, &config, &early);
        let response = client.response();
        assert!(response.ends_with("GET early=1 Resumed 0 HTTP/1.1\n"), "{response}");
        // The next one follows the handshake, and so does the ticket for the next connection.
        client.complete();
        assert!(client.tls.is_early_data_accepted());
        client.send(&request("GET", "/early.php", "Early-Data: 1\r\n"));
        let response = client.response();
        assert!(response.ends_with("GET early=no Resumed 0 HTTP/1.1\n"), "{response}");
    }
}

#[test]
fn other_requests_wait_for_the_handshake() {
    let site = Site::serving("early_data = true");
    let config = site.client("http/1.1");
    for (method, more, body) in [
        ("POST", "Content-Length: 4\r\n", "body"),
        ("DELETE", "", ""),
        ("GET", "Content-Length: 4\r\n", "body"),
        ("GET", "Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n"),
        ("GET", "Connection: upgrade\r\nUpgrade: websocket\r\n", ""),
    ] {
        let early = [&request(method, "/early.php", more), body.as_bytes()].concat();
        let mut client = Early::connect(&site, &config, &early);
        // Another client has its response, this one has none.
        let other = Early::connect(&site, &config, &request("GET", "/early.php", "")).response();
        assert!(other.contains("early=1"), "{other}");
        client.socket.set_nonblocking(true).unwrap();
        let mut is_there = false;
        while let Ok(count) = client.tls.read_tls(&mut client.socket) {
            assert_ne!(count, 0, "{method} {more}");
            is_there = true;
            client.tls.process_new_packets().expect("TLS");
        }
        assert!(client.tls.reader().read(&mut [0]).is_err(), "{method} {more} {is_there}");
        client.socket.set_nonblocking(false).unwrap();
        client.complete();
        let response = client.response();
        let length = if body.is_empty() { 0 } else { 4 };
        let expected = format!("{method} early=no Resumed {length} HTTP/1.1\n");
        assert!(response.ends_with(&expected), "{response}");
        // Tickets for the next.
        client.send(&request("GET", "/early.php", ""));
        client.response();
    }
}

#[test]
fn a_recorded_first_flight_is_served_once_at_most() {
    let site = Site::serving("early_data = true");
    let config = site.client("http/1.1");
    let name = "localhost".try_into().unwrap();
    let mut tls = ClientConnection::new(config, name).unwrap();
    let request = request("GET", "/early.php", "");
    tls.early_data().expect("there is a ticket").write_all(&request).unwrap();
    let mut flight = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut flight).unwrap();
    }
    let before = site.site.status()["requests"].as_u64();
    let sockets: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut socket = TcpStream::connect(site.address()).unwrap();
            socket.write_all(&flight).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        })
        .collect();
    for mut socket in &sockets {
        // Every one has a response of the server's handshake.
        assert!(socket.read(&mut [0; 4096]).unwrap() > 0);
    }
    outboard_e2e::eventually("one is served", || {
        site.site.status()["requests"].as_u64() == before.map(|count| count + 1)
    });
    drop(sockets);
    let after = site.site.status()["requests"].as_u64();
    assert_eq!(after, before.map(|count| count + 1));
}

#[test]
fn upstreams_see_early_data_and_425_passes_through() {
    let site = Site::serving("early_data = true");
    let config = site.client("http/1.1");
    let mut client = Early::connect(&site, &config, &request("GET", "/echo", ""));
    let response = client.response().to_ascii_lowercase();
    assert!(response.contains("early-data: 1\r\n"), "{response}");
    client.complete();
    client.send(&request("GET", "/echo", "Early-Data: 1\r\n"));
    let response = client.response().to_ascii_lowercase();
    assert!(response.contains("get /echo") && !response.contains("early-data"), "{response}");
    for path in ["/status/425", "/early.php?too_early"] {
        let mut client = Early::connect(&site, &config, &request("GET", path, ""));
        client.receive(|received| received.windows(4).any(|bytes| bytes == b"\r\n\r\n"));
        assert!(client.received.starts_with(b"HTTP/1.1 425 Too Early\r\n"), "{path}");
        client.complete();
        client.send(&request("GET", "/early.php", ""));
        client.response();
    }
}

#[test]
fn early_data_is_not_accepted_unless_configured() {
    let site = Site::serving("");
    let config = site.client("http/1.1");
    let mut tls = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    assert!(tls.early_data().is_none());
}

#[test]
fn a_trusted_proxy_reports_early_data() {
    let site = Site::serving("early_data = true\ntrusted_proxies = [\"127.0.0.1\"]");
    let config = site.client("http/1.1");
    let mut client = Early::connect(&site, &config, b"");
    client.complete();
    client.send(&request("GET", "/early.php", "Early-Data: 1\r\n"));
    let response = client.response();
    assert!(response.ends_with("GET early=1 Resumed 0 HTTP/1.1\n"), "{response}");
}

/// A connection preface, empty settings, and a request by indexed fields (RFC 7541 A).
fn http2_request(method_index: u8, stream: u8, path: &str) -> Vec<u8> {
    let mut block = vec![0x80 | method_index, 0x87, 0x41, 9];
    block.extend_from_slice(b"localhost");
    block.extend_from_slice(&[0x44, path.len() as u8]);
    block.extend_from_slice(path.as_bytes());
    let head = [0, 0, block.len() as u8, 1, 5, 0, 0, 0, stream];
    [&head[..], &block].concat()
}

#[test]
fn http2_serves_safe_requests_and_has_others_wait() {
    const GET: u8 = 2;
    const POST: u8 = 3;
    let site = Site::serving("early_data = true");
    let config = site.client("h2");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let requests = [http2_request(POST, 1, "/early.php"), http2_request(GET, 3, "/early.php")];
    let early = [&preface[..], &requests.concat()].concat();
    let mut client = Early::connect(&site, &config, &early);
    let has = |received: &[u8], text: &str| String::from_utf8_lossy(received).contains(text);
    assert!(client.receive(|received| has(received, "GET early=1 Resumed 0 HTTP/2.0\n")));
    assert!(!has(&client.received, "POST"));
    client.complete();
    assert!(client.receive(|received| has(received, "POST early=no Resumed 0 HTTP/2.0\n")));
}

/// By ngtcp2's gtlsclient, which sends requests in early data if it has a session.
#[test]
fn http3_serves_early_requests_after_the_handshake() {
    let site = Site::serving("early_data = true");
    let scratch = Scratch::new("early-data");
    let [session, parameters] =
        ["session", "parameters"].map(|name| scratch.path().join(name).display().to_string());
    let port = site.address().port().to_string();
    let run = |more: &[&str]| {
        let download = scratch.folder("download");
        let mut client = Command::new("timeout");
        client
            .args(["30", "gtlsclient", "--exit-on-all-streams-close", "--download"])
            .arg(&download);
        client.args(["--session-file", &session, "--tp-file", &parameters]).args(more);
        client.args(["127.0.0.1", &port]).arg(format!("https://localhost:{port}/early.php"));
        let output = client.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let body = std::fs::read_to_string(download.join("early.php")).unwrap();
        std::fs::remove_file(download.join("early.php")).unwrap();
        body
    };
    assert_eq!(run(&[]), "GET early=no Initial 0 HTTP/3.0\n");
    for _ in 0..CONNECTIONS {
        // It has no token that proves its address, as the client of `advisories::quic` has.
        assert_eq!(run(&[]), "GET early=no Resumed 0 HTTP/3.0\n");
    }
    assert_eq!(run(&["-m", "POST"]), "POST early=no Resumed 0 HTTP/3.0\n");
}
