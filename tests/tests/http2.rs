//! HTTP/2 without TLS, and that a request has the same response whichever protocol it comes by.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot};
use std::io::Write;
use std::process::{Command, Stdio};

const HTTP1: &str = "--http1.1";
const HTTP2: &str = "--http2-prior-knowledge";

fn serving() -> Configured {
    let docroot = Docroot::of("http2");
    std::fs::write(docroot.path().join("file.txt"), "0123456789abcdef".repeat(20_000)).unwrap();
    std::fs::write(docroot.path().join("empty.txt"), "").unwrap();
    Configured::start(docroot, &Configured::text("[app.site.static]\ncache_control = \"public\"\n"))
}

/// What curl prints for a path.
fn curl(site: &Configured, protocol: &str, arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new("curl")
        .args(["-sS", "-m", "20", protocol])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A server that responds early closes the pipe.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(site.status()["state"] != "stopped");
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&printed).into_owned()
}

fn url(site: &Configured, path: &str) -> String {
    format!("http://{}{path}", site.address())
}

#[test]
fn a_client_with_prior_knowledge_needs_no_tls() {
    let site = serving();
    let url = url(&site, "/protocol.php");
    assert_eq!(curl(&site, HTTP2, &["-w", " %{http_version}", &url], b""), "HTTP/2.0 http 2");
    assert_eq!(curl(&site, HTTP1, &["-w", " %{http_version}", &url], b""), "HTTP/1.1 http 1.1");
}

#[test]
fn uploads_arrive_whole_with_and_without_a_length() {
    let site = serving();
    let url = url(&site, "/echo.php");
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 999) as u8).collect();
    let file = site.root().join("upload");
    std::fs::write(&file, &body).unwrap();
    let from_file = format!("@{}", file.display());
    for arguments in [&["--data-binary", &from_file][..], &["-T", "-", "-X", "POST"]] {
        let arguments = [arguments, &["-H", "Content-Type: a/b", &url]].concat();
        let printed = curl(&site, HTTP2, &arguments, &body);
        assert!(printed.contains("\"length\":3000000"), "{printed}");
        assert_eq!(printed, curl(&site, HTTP1, &arguments, &body));
    }
}

/// Status, header lines without the `own` of a protocol or a moment, and the body.
fn without_framing(printed: &str, own: &[&str]) -> (String, Vec<String>, String) {
    let (head, body) = printed.split_once("\r\n\r\n").unwrap_or((printed, ""));
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let lines = lines.map(|line| match line.split_once(':') {
        Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
        None => line.to_owned(),
    });
    let mut lines: Vec<String> =
        lines.filter(|line| !own.iter().any(|own| line.starts_with(own))).collect();
    lines.sort();
    (status, lines, body.to_owned())
}

#[test]
fn a_response_does_not_depend_on_the_protocol() {
    let site = serving();
    let long = format!("X-Long: {}", "a".repeat(7_000));
    let too_long = format!("X-Long: {}", "a".repeat(60_000));
    let query = format!("/echo.php?{}", "q".repeat(9_000));
    let cases: &[&[&str]] = &[
        &["/echo.php?a=b&c[]=d"],
        &["/echo.php", "-H", "Cookie: x=1; y=2", "-H", "X-Probe: here"],
        &["/echo.php", "-d", "name=value&more=1"],
        &["/echo.php", "-d", "", "-H", "Expect: 100-continue"],
        &["/echo.php", "-H", &long],
        &["/echo.php", "-H", &too_long],
        &[&query],
        &["/echo.php", "-X", "PURGE"],
        &["/echo.php", "-H", "Host: other.test:81"],
        &["/pieces.php"],
        &["/pieces.php", "-I"],
        &["/status.php?code=204"],
        &["/status.php?code=301"],
        &["/status.php?code=304"],
        &["/status.php?code=500"],
        &["/file.txt"],
        &["/file.txt", "-I"],
        &["/file.txt", "-r", "10-30"],
        &["/file.txt", "-r", "999999999-"],
        &["/file.txt", "-H", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"],
        &["/empty.txt"],
        &["/missing.txt"],
        &["/a%00b"],
        &["/a%zzb"],
        &["/%2e%2e/etc/passwd"],
        &["/.git/config"],
        &["*", "-X", "OPTIONS", "--request-target", "*"],
    ];
    for case in cases {
        let path = if case[0].starts_with('/') { case[0] } else { "/" };
        let url = url(&site, path);
        let arguments = [&["-i", "--path-as-is", &url], &case[1..]].concat();
        // PHP may end before the head of its first piece is sent, and then the length is known.
        let own: &[&str] = if path == "/pieces.php" {
            &["date:", "connection:", "transfer-encoding:", "content-length:"]
        } else {
            &["date:", "connection:", "transfer-encoding:"]
        };
        let [first, second] = [HTTP1, HTTP2]
            .map(|protocol| without_framing(&curl(&site, protocol, &arguments, b""), own));
        let shown: Vec<String> = case.iter().map(|part| part.chars().take(60).collect()).collect();
        assert_eq!(first, second, "{shown:?}");
    }
}
