//! Floods from outside: connections, requests, bodies, and readers that take all that comes.

use super::*;
use outboard_e2e::{Certificate, accept};
use rustix::net::sockopt::set_socket_linger;
use std::net::TcpListener;
use std::process::{Command, Stdio};

#[test]
fn early_hints_without_end() {
    is_borne("headers_send()", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            let request = Request::get("/early_hints.php").to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE);
            }
        })
    });
}

#[test]
fn output_that_is_read_as_fast_as_it_comes() {
    is_borne("output, read", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            let request = Request::get("/output.php").to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE);
            }
        })
    });
}

#[test]
fn output_without_a_reader() {
    is_borne("output, unread", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            let request = Request::get("/output.php").to_bytes("site");
            let stream = unread(address, &request);
            sleep(DEADLINE);
            drop(stream);
        })
    });
}

#[test]
fn uploads_without_end() {
    is_borne("uploads", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            let head = "POST /hello.php HTTP/1.1\r\nHost: site\r\nContent-Length: 10000000\r\n\r\n";
            let Some(mut stream) = unread(address, head.as_bytes()) else { return };
            let piece = [b'u'; 64 * 1024];
            while stream.write_all(&piece).is_ok() {}
        })
    });
}

#[test]
fn more_requests_than_wait() {
    let pool = "[app.site.pool]\nmin = 1\nmax = 1\nqueue_length = 20\nloopback_slots = 0";
    is_borne("a full queue", serving(pool), |site| {
        let address = site.address();
        Flood::of_clients(40, move || {
            let request = Request::get("/busy.php").to_bytes("site");
            if let Some(mut stream) = unread(address, &request) {
                let _ = stream.read(&mut [0; 512]);
            }
        })
    });
}

#[test]
fn connections_without_end() {
    is_borne("connections", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            if let Some(stream) = reach(address) {
                // Without it the ports of this side are used up.
                let _ = set_socket_linger(&stream, Some(Duration::ZERO));
            }
        })
    });
}

#[test]
fn http2_frames_without_end() {
    is_borne("HTTP/2 SETTINGS, PING", classic(), |site| {
        let address = site.address();
        Flood::of_clients(4, move || {
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
            let Some(mut stream) = unread(address, preface) else { return };
            let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
            let mut ping = vec![0, 0, 8, 6, 0, 0, 0, 0, 0];
            ping.extend_from_slice(b"12345678");
            let piece = [&settings[..], &ping].concat().repeat(500);
            let _ = stream.write_all(&settings);
            while stream.write_all(&piece).is_ok() {}
        })
    });
}

#[test]
fn pipelined_requests_without_end() {
    is_borne("pipelined requests", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            let requests = "GET /hello.php HTTP/1.1\r\nHost: site\r\n\r\n".repeat(200);
            drop(unread(address, requests.as_bytes()));
        })
    });
}

/// Both ask for what takes no time to make.
#[test]
fn pipelined_requests_that_are_all_read() {
    is_borne("pipelined, read", classic(), |site| {
        let address = site.address();
        Flood::of_clients(2, move || {
            let requests = "GET /no-such-file.txt HTTP/1.1\r\nHost: site\r\n\r\n".repeat(2000);
            if let Some(mut stream) = unread(address, requests.as_bytes()) {
                let until = Instant::now() + DEADLINE / 4;
                let mut piece = vec![0; 64 * 1024];
                let _ = stream.set_read_timeout(Some(DEADLINE / 8));
                while Instant::now() < until && stream.read(&mut piece).is_ok_and(|read| read > 0) {
                }
            }
        })
    });
}

/// The first words of a client of TLS, as often as one likes: the server has all the work.
#[test]
fn handshakes_without_end() {
    let docroot = docroot();
    Certificate::make(docroot.beside().path(), "one", "DNS:site");
    let own = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
               [[listen]]\naddress = \"127.0.0.2:0\"\ntls = [{ certificate = \"one.pem\", key = \"one.key\" }]\n";
    // Tables come behind the keys of the file itself.
    let text = format!("{}{own}", text("", "[app.site.pool]\nmin = 1\nmax = 1"));
    let hello = client_hello();
    is_borne("TLS handshakes", Configured::start(docroot, &text), move |site| {
        let (address, hello) = (tls_address(site), hello.clone());
        Flood::of_clients(8, move || {
            if let Some(mut stream) = unread(address, &hello) {
                let _ = stream.read(&mut [0; 1]);
            }
        })
    });
}

/// As openssl says it.
pub(crate) fn client_hello() -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let mut client = Command::new("openssl")
        .args(["s_client", "-servername", "site", "-connect", &address])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is there");
    let mut stream = accept(&listener);
    let mut hello = vec![0; 5];
    stream.read_exact(&mut hello).expect("a record begins");
    let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
    hello.resize(5 + length, 0);
    stream.read_exact(&mut hello[5..]).expect("a record");
    drop(stream);
    let _ = client.kill();
    let _ = client.wait();
    hello
}
