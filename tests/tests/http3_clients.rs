//! HTTP/3 by clients that nobody here wrote: ngtcp2's gtlsclient, quic-go and Chromium, over networks that
//! are in order, lose datagrams or reorder them.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Browser, Certificate, Configured, Docroot, LossyNetwork, Scratch, eventually_within,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Bytes of the file that is fetched and of the body that is sent: more than every window.
const LARGE: usize = 3_000_000;
/// Requests at a time.
const MANY: usize = 50;
/// One datagram of so many is lost, and one of so many arrives late; 0 for none.
const NETWORKS: [(usize, usize); 3] = [(0, 0), (20, 0), (0, 7)];
const PATIENCE: &str = "60";

struct Site {
    site: Configured,
    certificate: Certificate,
    body: PathBuf,
    scratch: Scratch,
}

impl Site {
    fn start() -> Site {
        let docroot = Docroot::of("http3");
        let certificate =
            Certificate::make(docroot.beside().path(), "one", "IP:127.0.0.1,DNS:localhost");
        let bytes: Vec<u8> = (0..LARGE as u32).map(|at| (at ^ at >> 8) as u8).collect();
        std::fs::write(docroot.path().join("large.bin"), &bytes).unwrap();
        let page = "<script>fetch('length.php').then(r => r.text()).then(t => document.title = t)\
                    </script>";
        std::fs::write(docroot.path().join("page.html"), page).unwrap();
        let scratch = Scratch::new("http3-clients");
        let body = scratch.path().join("body");
        std::fs::write(&body, &bytes).unwrap();
        let text = Configured::text("");
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        let text = format!(
            "threads = 2\n{rest}[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n\
             tls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n"
        );
        Site { site: Configured::start(docroot, &text), certificate, body, scratch }
    }

    fn address(&self) -> SocketAddr {
        let url = self.site.listeners()[0].clone();
        let address = url.strip_prefix("https://").expect("it has certificates");
        address.trim_end_matches('/').parse().expect("an address")
    }

    /// What every client gets of [`Site::body`].
    fn digest(&self) -> String {
        sha256(&self.body)
    }

    /// Requests by gtlsclient; the bodies of the responses by the names of their files.
    fn gtlsclient(&self, port: u16, options: &[&str], paths: &[&str]) -> PathBuf {
        let download = self.scratch.folder("download");
        let urls = paths.iter().map(|path| format!("https://localhost:{port}{path}"));
        let mut client = Command::new("timeout");
        client.args([PATIENCE, "gtlsclient", "--quiet", "--exit-on-all-streams-close"]);
        client.arg("--download").arg(&download).args(options);
        client.args(["127.0.0.1", &port.to_string()]).args(urls);
        succeeded(&client.output().unwrap());
        download
    }
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{out}{err}");
    out.into_owned()
}

fn sha256(file: &Path) -> String {
    let printed = succeeded(&Command::new("sha256sum").arg(file).output().unwrap());
    printed.split_once(' ').expect("the digest and the name").0.to_owned()
}

#[track_caller]
fn is_same(file: &Path, other: &Path) {
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(read(file) == read(other), "{} is another", file.display());
}

#[test]
fn ngtcp2_fetches_and_sends_over_every_network() {
    let site = Site::start();
    for (lost_of, late_of) in NETWORKS {
        let port = LossyNetwork::to(site.address(), lost_of, late_of).address().port();
        let folder = site.gtlsclient(port, &[], &["/large.bin"]);
        is_same(&folder.join("large.bin"), &site.body);
        let body = site.body.display().to_string();
        let folder = site.gtlsclient(port, &["-m", "POST", "-d", &body], &["/length.php"]);
        let response = std::fs::read_to_string(folder.join("length.php")).unwrap();
        assert_eq!(response, format!("{LARGE} {} HTTP/3.0", site.digest()));
    }
}

/// RFC 9000 9, RFC 9001 6 and 4.6.1, RFC 9369 (which is not offered).
#[test]
fn ngtcp2_changes_address_keys_and_ciphers() {
    let site = Site::start();
    let port = site.address().port();
    let session = site.scratch.path().join("session").display().to_string();
    let parameters = site.scratch.path().join("parameters").display().to_string();
    let resumes = ["--session-file", &session, "--tp-file", &parameters];
    for options in [
        &["--change-local-addr", "5ms"][..],
        // Before the request: the server updates its keys after 10 to 999 packets, and the client gives
        // up if it begins its own update while another is under way.
        &["--key-update", "100ms", "--delay-stream", "300ms"],
        &["--ciphers", "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305"],
        &["--max-udp-payload-size", "1200"],
        &resumes,
        // The second time with a ticket.
        &resumes,
    ] {
        let folder = site.gtlsclient(port, options, &["/large.bin"]);
        is_same(&folder.join("large.bin"), &site.body);
        std::fs::remove_file(folder.join("large.bin")).unwrap();
    }
}

#[test]
fn quic_go_fetches_and_sends_over_every_network() {
    let site = Site::start();
    let client = quic_go(&site.scratch);
    let run = |count: usize, port: u16, path: &str, body: &[&Path]| {
        let mut command = Command::new("timeout");
        command.arg(PATIENCE).arg(&client).arg(&site.certificate.chain).arg(count.to_string());
        command.arg(format!("https://localhost:{port}{path}")).args(body);
        succeeded(&command.output().unwrap())
    };
    let whole = format!("200 HTTP/3.0 {LARGE} {}\n", site.digest());
    for (lost_of, late_of) in NETWORKS {
        let port = LossyNetwork::to(site.address(), lost_of, late_of).address().port();
        assert_eq!(run(1, port, "/large.bin", &[]), whole);
        assert_eq!(run(4, port, "/large.bin", &[]), whole.repeat(4));
        let expected = format!("{LARGE} {} HTTP/3.0", site.digest());
        let file = site.scratch.path().join("expected");
        std::fs::write(&file, &expected).unwrap();
        let line = format!("200 HTTP/3.0 {} {}\n", expected.len(), sha256(&file));
        assert_eq!(run(1, port, "/length.php", &[&site.body]), line);
        assert_eq!(run(MANY, port, "/length.php", &[]).lines().count(), MANY);
    }
}

/// The program of `tests/fixtures/http3`, built with Debian's packages alone.
fn quic_go(scratch: &Scratch) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/http3/client.go");
    let program = scratch.path().join("quic-go");
    let mut go = Command::new("/usr/bin/go");
    go.args(["build", "-o"]).arg(&program).arg(source);
    go.env("GOPATH", "/usr/share/gocode").env("GO111MODULE", "off").env("GOFLAGS", "");
    go.env("GOCACHE", scratch.folder("go"));
    succeeded(&go.output().expect("golang-go is installed"));
    program
}

/// The page and what its script fetches.
#[test]
fn chromium_loads_a_page() {
    let site = Site::start();
    let port = site.address().port();
    let mut browser = Browser::start_with(&[
        format!("--origin-to-force-quic-on=127.0.0.1:{port}"),
        format!("--ignore-certificate-errors-spki-list={}", key_digest(&site)),
    ]);
    browser.visit(&format!("https://127.0.0.1:{port}/page.html"));
    eventually_within(Duration::from_secs(30), "the script has fetched", || {
        let title = browser.evaluate("document.title");
        let title = title.as_str().unwrap_or_default().to_owned();
        if title.ends_with("HTTP/3.0") { Ok(()) } else { Err(title) }
    });
    let protocol = "performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert_eq!(browser.evaluate(protocol), "h3");
}

/// Its subject public key info, as Chromium wants it: the SHA-256, in Base64.
fn key_digest(site: &Site) -> String {
    let chain = site.certificate.chain.display().to_string();
    let script = format!(
        "openssl x509 -in '{chain}' -noout -pubkey | openssl pkey -pubin -outform der |\
         openssl dgst -sha256 -binary | base64"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    succeeded(&output).trim().to_owned()
}
