//! The TLS of HTTP/3, by ngtcp2's gtlsclient: it is reported as that of other protocols is.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Certificate, Configured, Docroot, Launch, Scratch, Server, eventually, s_client,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

const PATIENCE: &str = "30";

struct Site {
    site: Configured,
    scratch: Scratch,
}

impl Site {
    fn start() -> Site {
        Site::launched(Launch::new(&Server::binary().display().to_string()), "production")
    }

    fn launched(program: Launch, environment: &str) -> Site {
        let docroot = Docroot::of("tls");
        Certificate::make(docroot.beside().path(), "one", "IP:127.0.0.1,DNS:localhost");
        let text = Configured::text("")
            .replace("path = \"off\"", "path = \"access.log\"\nformat = \"json\"");
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        let text = format!(
            "environment = \"{environment}\"\nthreads = 2\n{rest}[[listen]]\naddress = \"127.0.0.1:0\"\n\
             http3 = true\ntls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n"
        );
        let site = Configured::launched(program, docroot, &text);
        Site { site, scratch: Scratch::new("http3-tls") }
    }

    fn folder(&self) -> PathBuf {
        self.site.docroot().beside().path().to_owned()
    }

    fn address(&self) -> SocketAddr {
        let url = self.site.listeners()[0].clone();
        let address = url.strip_prefix("https://").expect("it has certificates");
        address.trim_end_matches('/').parse().expect("an address")
    }

    /// The variables that a script gets by HTTP/3.
    fn variables(&self, options: &[&str]) -> String {
        let port = self.address().port().to_string();
        let download = self.scratch.folder("download");
        let mut client = Command::new("timeout");
        client.args([PATIENCE, "gtlsclient", "--quiet", "--exit-on-all-streams-close"]);
        client.arg("--download").arg(&download).args(options);
        client.args(["127.0.0.1", &port]).arg(format!("https://localhost:{port}/ssl.php"));
        let output = client.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::read_to_string(download.join("ssl.php")).unwrap()
    }

    /// Those that it gets by HTTP/1.1.
    fn variables_of_http1(&self, options: &[&str]) -> String {
        let printed = s_client(&self.folder(), self.address(), "/ssl.php", options);
        let lines = printed.lines().filter(|line| line.starts_with("SSL_") && line.contains('='));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

#[test]
fn variables_are_those_of_other_protocols() {
    let site = Site::start();
    for (cipher, of_gnutls) in [
        ("TLS_AES_128_GCM_SHA256", "AES-128-GCM"),
        ("TLS_AES_256_GCM_SHA384", "AES-256-GCM"),
        ("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    ] {
        let [session, parameters] = ["session", "parameters"]
            .map(|name| site.scratch.path().join(format!("{name}-{cipher}")).display().to_string());
        let ciphers = format!("NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+{of_gnutls}");
        let http3 = ["--ciphers", &ciphers, "--session-file", &session, "--tp-file", &parameters];
        let http1 = ["-servername", "localhost", "-tls1_3", "-ciphersuites", cipher];
        let first = site.variables(&http3);
        assert_eq!(first, site.variables_of_http1(&[&http1[..], &["-sess_out", "s"]].concat()));
        let expected =
            format!("SSL_CIPHER={cipher}\nSSL_PROTOCOL=TLSv1.3\nSSL_SESSION_RESUMED=Initial\n");
        assert_eq!(first, expected);
        let next = site.variables(&http3);
        assert_eq!(next, site.variables_of_http1(&[&http1[..], &["-sess_in", "s"]].concat()));
        assert_eq!(next, expected.replace("Initial", "Resumed"));
    }
}

#[test]
fn connections_and_handshakes_are_counted_and_logged() {
    let site = Site::start();
    let [session, parameters] =
        ["session", "parameters"].map(|name| site.scratch.path().join(name).display().to_string());
    let resumes = ["--session-file", &session, "--tp-file", &parameters];
    let before = site.site.status();
    site.variables(&resumes);
    site.variables(&resumes);
    let after = site.site.status();
    let count = |kind: &str| {
        let of = |status: &serde_json::Value| status["tls"][kind].as_u64().expect("a count");
        of(&after) - of(&before)
    };
    assert_eq!([count("full_1_3"), count("resumed_1_3"), count("failed")], [1, 1, 0], "{after}");
    let served = |status: &serde_json::Value| status["requests"].as_u64().expect("a count");
    assert_eq!(served(&after) - served(&before), 2);
    eventually("the lines are written", || {
        let log = std::fs::read_to_string(site.folder().join("access.log")).unwrap_or_default();
        let lines = log.lines().filter(|line| {
            line.contains("\"tls_protocol\":\"TLSv1.3\"")
                && line.contains("HTTP/3")
                && line.contains("\"tls_cipher\":\"TLS_AES_")
        });
        // Each thread writes its own lines.
        let lines: Vec<&str> = lines.collect();
        let resumed = lines.iter().filter(|line| line.contains("\"tls_resumed\":true"));
        (lines.len(), resumed.count()) == (2, 1)
    });
}

#[test]
fn a_handshake_that_fails_is_counted() {
    let site = Site::start();
    let port = site.address().port().to_string();
    let mut client = Command::new("timeout");
    client.args([PATIENCE, "gtlsclient", "--quiet", "--exit-on-all-streams-close"]);
    // A key exchange that is not offered.
    client.args(["--groups", "-GROUP-ALL:+GROUP-X448"]);
    client.args(["127.0.0.1", &port]).arg(format!("https://localhost:{port}/ssl.php"));
    client.output().unwrap();
    eventually("it is counted", || site.site.status()["tls"]["failed"].as_u64() == Some(1));
}

#[test]
fn secrets_are_logged_in_development_only() {
    for (environment, is_logged) in [("development", true), ("production", false)] {
        let scratch = Scratch::new("secrets");
        let file = scratch.path().join("secrets");
        let variable = format!("SSLKEYLOGFILE={}", file.display());
        let program = Launch::new("env").arg(variable).arg(Server::binary());
        let site = Site::launched(program, environment);
        assert!(site.variables(&[]).contains("SSL_PROTOCOL=TLSv1.3\n"));
        let secrets = std::fs::read_to_string(file).unwrap_or_default();
        assert_eq!(secrets.contains("CLIENT_TRAFFIC_SECRET_0"), is_logged, "{environment}");
    }
}
