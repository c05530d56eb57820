//! HTTP/3 on a listener's UDP port, by `outboard bench` as the client.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Configured, Docroot, Server, eventually};
use serde_json::Value;
use std::process::Command;

/// Bytes of `large.txt`, more than every window.
const LARGE: usize = 2_000_000;

struct Site {
    site: Configured,
    certificate: Certificate,
}

impl Site {
    fn serving(http3: &str) -> Site {
        let docroot = Docroot::of("http2");
        let certificate = Certificate::make(docroot.beside().path(), "one", "IP:127.0.0.1");
        std::fs::write(docroot.path().join("large.txt"), vec![b'x'; LARGE]).unwrap();
        let site = Configured::start(docroot, &Site::text(http3));
        Site { site, certificate }
    }

    fn text(http3: &str) -> String {
        let text = Configured::text("");
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        format!(
            "threads = 2\n{rest}[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n{http3}\n"
        )
    }

    fn url(&self, path: &str) -> String {
        let url = self.site.listeners()[0].clone();
        assert!(url.starts_with("https://127.0.0.1:"), "{url}");
        format!("{}{path}", url.trim_end_matches('/'))
    }

    /// Requests by HTTP/3; the report.
    fn bench(&self, path: &str, more: &[&str]) -> Value {
        let file = self.site.root().join("result.json");
        let mut command = Command::new(Server::binary());
        command.args(["bench", "--http3", "--insecure", "--quiet", "--json"]).arg(&file);
        let output = command.args(more).arg(self.url(path)).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {printed}"));
        serde_json::from_str(&text).unwrap()
    }

    /// The response to curl, with its head, by HTTP/2.
    fn curl(&self, path: &str) -> String {
        let mut curl = Command::new("curl");
        curl.args(["-sSi", "-m", "20", "--cacert"]).arg(&self.certificate.chain);
        let output = curl.arg(self.url(path)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[track_caller]
fn responses_without_failure(report: &Value, least: u64) {
    assert_eq!(report["protocol"], "HTTP/3", "{report}");
    assert!(report["responses"].as_u64() >= Some(least), "{report}");
    assert_eq!(report["failures"]["total"], 0, "{report}");
}

#[test]
fn pages_and_files_are_served_on_every_thread() {
    let site = Site::serving("http3 = true");
    let many = ["--connections", "8", "--streams", "10", "--requests", "400"];
    responses_without_failure(&site.bench("/protocol.php", &many), 400);
    responses_without_failure(&site.bench("/pieces.php", &["--requests", "20"]), 20);
    let upload = ["--requests", "20", "--body", &"b".repeat(100_000)];
    responses_without_failure(&site.bench("/echo.php", &upload), 20);
    let check = format!("length={LARGE}");
    let report = site.bench("/large.txt", &["-c", "2", "--requests", "20", "--check", &check]);
    responses_without_failure(&report, 20);
}

#[test]
fn clients_of_other_protocols_learn_of_it_and_a_reload_ends_it() {
    let site = Site::serving("http3 = true");
    let announced = |site: &Site| site.curl("/protocol.php").to_ascii_lowercase();
    let port = site.url("").rsplit(':').next().unwrap().to_owned();
    let line = format!("alt-svc: h3=\":{port}\"; ma=86400\r\n");
    assert!(announced(&site).contains(&line), "{}", announced(&site));
    for (http3, is_announced) in [("", false), ("http3 = true", true)] {
        site.site.rewrite(&Site::text(http3));
        eventually("the port is free for UDP, if another program has it for a moment", || {
            let output = site.site.command("reload", &[]);
            let is_taken = String::from_utf8_lossy(&output.stderr).contains("in use");
            assert!(output.status.success() || is_taken, "{output:?}");
            output.status.success()
        });
        assert_eq!(announced(&site).contains(&line), is_announced);
    }
    responses_without_failure(&site.bench("/protocol.php", &["--requests", "20"]), 20);
}
