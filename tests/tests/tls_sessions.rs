//! Which TLS sessions are resumed: on any thread and after a reload, and never where other clients are
//! admitted.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Configured, Docroot, Launch, Server, eventually, s_client};
use std::net::SocketAddr;
use std::path::PathBuf;

/// So many connections reach both threads, as good as certainly.
const CONNECTIONS: usize = 16;
const VERSIONS: [(&str, &str); 2] = [("-tls1_3", "TLSv1.3"), ("-tls1_2", "TLSv1.2")];

/// Two listeners with the same certificate; the second requests certificates of clients.
struct Site(Configured);

impl Site {
    fn start() -> Site {
        let docroot = Docroot::of("tls");
        let folder = docroot.beside().path().to_owned();
        Certificate::make(&folder, "one", "DNS:one.test,DNS:other.test");
        Certificate::make(&folder, "client", "DNS:client.test");
        Certificate::make(&folder, "stranger", "DNS:stranger.test");
        Site(Configured::start(docroot, &Site::text("")))
    }

    fn text(clients: &str) -> String {
        let tls = "tls = [{ certificate = \"one.pem\", key = \"one.key\" }]";
        let listen = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}\n\
             [[listen]]\naddress = \"127.0.0.2:0\"\n{tls}\nclient_ca = \"client.pem\"\n{clients}\n"
        );
        let text = Configured::text("[limits]\nheader_timeout = \"60s\"");
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        format!("threads = 2\n{rest}{listen}")
    }

    fn folder(&self) -> PathBuf {
        self.0.docroot().beside().path().to_owned()
    }

    fn address(&self, number: usize) -> SocketAddr {
        let url = &self.0.listeners()[number];
        url.trim_start_matches("https://").trim_end_matches('/').parse().unwrap()
    }

    fn connect(&self, number: usize, options: &[&str]) -> String {
        s_client(&self.folder(), self.address(number), "/ssl.php", options)
    }

    fn reload(&self) {
        let outcome = self.0.command("reload", &[]);
        assert!(outcome.status.success(), "{outcome:?}");
    }
}

const ONE: [&str; 2] = ["-servername", "one.test"];
const CLIENT: [&str; 6] = ["-servername", "one.test", "-cert", "client.pem", "-key", "client.key"];

#[test]
fn every_thread_resumes_a_session_also_after_a_reload() {
    let site = Site::start();
    for (option, version) in VERSIONS {
        let first = site.connect(0, &[&ONE[..], &[option, "-sess_out", "session"]].concat());
        assert!(first.contains(&format!("SSL_PROTOCOL={version}\n")), "{first}");
        assert!(first.contains("SSL_SESSION_RESUMED=Initial\n"), "{first}");
        for round in ["before", "after"] {
            for _ in 0..CONNECTIONS {
                let next = site.connect(0, &[&ONE[..], &[option, "-sess_in", "session"]].concat());
                assert!(next.contains("SSL_SESSION_RESUMED=Resumed\n"), "{round}: {next}");
                assert!(next.contains(&format!("SSL_PROTOCOL={version}\n")), "{next}");
            }
            site.reload();
        }
    }
}

#[test]
fn handshakes_are_counted_and_sessions_are_logged() {
    let site = Site::start();
    let text = Site::text("").replace("path = \"off\"", "path = \"access.log\"\nformat = \"json\"");
    site.0.rewrite(&text);
    site.reload();
    for (option, _) in VERSIONS {
        site.connect(0, &[&ONE[..], &[option, "-sess_out", "session"]].concat());
        site.connect(0, &[&ONE[..], &[option, "-sess_in", "session"]].concat());
    }
    site.connect(1, &ONE);
    let counts = &site.0.status()["tls"];
    for kind in ["full_1_2", "resumed_1_2", "full_1_3", "resumed_1_3", "failed"] {
        assert_eq!(counts[kind].as_u64(), Some(1), "{counts}");
    }
    eventually("the lines are written", || {
        let log = std::fs::read_to_string(site.folder().join("access.log")).unwrap_or_default();
        let has = |facts: &str| log.lines().filter(|line| line.contains(facts)).count();
        has("\"tls_protocol\":\"TLSv1.3\"") == 2
            && has("\"tls_protocol\":\"TLSv1.2\"") == 2
            && has("\"tls_resumed\":true") == 2
            && has("\"tls_cipher\":\"ECDHE-ECDSA-AES256-GCM-SHA384\"") == 2
    });
}

#[test]
fn secrets_are_logged_in_development_only() {
    for (environment, is_logged) in [("development", true), ("production", false)] {
        let docroot = Docroot::of("tls");
        let folder = docroot.beside().path().to_owned();
        Certificate::make(&folder, "one", "DNS:one.test");
        Certificate::make(&folder, "client", "DNS:client.test");
        let variable = format!("SSLKEYLOGFILE={}/secrets", folder.display());
        let program = Launch::new("env").arg(variable).arg(Server::binary());
        let text = format!("environment = \"{environment}\"\n{}", Site::text(""));
        let site = Site(Configured::launched(program, docroot, &text));
        assert!(site.connect(0, &ONE).contains("SSL_PROTOCOL=TLSv1.3\n"));
        let secrets = std::fs::read_to_string(folder.join("secrets")).unwrap_or_default();
        assert_eq!(secrets.contains("CLIENT_TRAFFIC_SECRET_0"), is_logged, "{environment}");
    }
}

#[test]
fn a_resumed_session_has_new_tickets() {
    let site = Site::start();
    site.connect(0, &[&ONE[..], &["-sess_out", "a"]].concat());
    for (from, to) in [("a", "b"), ("b", "c")] {
        let next = site.connect(0, &[&ONE[..], &["-sess_in", from, "-sess_out", to]].concat());
        assert!(next.contains("SSL_SESSION_RESUMED=Resumed\n"), "{next}");
    }
}

#[test]
fn a_session_is_not_resumed_for_another_server_name() {
    let site = Site::start();
    for (option, _) in VERSIONS {
        site.connect(0, &[&ONE[..], &[option, "-sess_out", "session"]].concat());
        let other = ["-servername", "other.test", option, "-sess_in", "session"];
        let next = site.connect(0, &other);
        assert!(next.contains("SSL_SESSION_RESUMED=Initial\n"), "{next}");
    }
}

#[test]
fn a_session_is_not_resumed_where_certificates_are_required() {
    let site = Site::start();
    for (option, _) in VERSIONS {
        site.connect(0, &[&ONE[..], &[option, "-sess_out", "session"]].concat());
        let refused = site.connect(1, &[&ONE[..], &[option, "-sess_in", "session"]].concat());
        assert!(!refused.contains("SSL_PROTOCOL"), "{refused}");
        assert!(refused.contains("alert"), "{refused}");
        // The other way round nothing about the client is carried over.
        let first = site.connect(1, &[&CLIENT[..], &[option, "-sess_out", "session"]].concat());
        assert!(first.contains("SSL_CLIENT_VERIFY=SUCCESS\n"), "{first}");
        let next = site.connect(0, &[&ONE[..], &[option, "-sess_in", "session"]].concat());
        assert!(next.contains("SSL_SESSION_RESUMED=Initial\n"), "{next}");
        assert!(!next.contains("SSL_CLIENT"), "{next}");
    }
}

#[test]
fn a_resumed_session_has_the_certificate_of_its_client() {
    let site = Site::start();
    for (option, _) in VERSIONS {
        let first = site.connect(1, &[&CLIENT[..], &[option, "-sess_out", "session"]].concat());
        assert!(first.contains("SSL_CLIENT_S_DN=CN=client\n"), "{first}");
        // Without the key: the session alone proves who the client is.
        let next = site.connect(1, &[&ONE[..], &[option, "-sess_in", "session"]].concat());
        assert!(next.contains("SSL_SESSION_RESUMED=Resumed\n"), "{next}");
        assert!(next.contains("SSL_CLIENT_S_DN=CN=client\n"), "{next}");
    }
}

#[test]
fn a_session_is_not_resumed_once_its_certificate_is_not_valid() {
    let site = Site::start();
    for (option, _) in VERSIONS {
        std::fs::copy(site.folder().join("client.pem"), site.folder().join("trusted.pem")).unwrap();
        site.0.rewrite(&Site::text("").replace("client.pem", "trusted.pem"));
        site.reload();
        let first = site.connect(1, &[&CLIENT[..], &[option, "-sess_out", "session"]].concat());
        assert!(first.contains("SSL_CLIENT_VERIFY=SUCCESS\n"), "{first}");
        // The settings are the same, and so are the keys of tickets; the file has another authority.
        std::fs::copy(site.folder().join("stranger.pem"), site.folder().join("trusted.pem"))
            .unwrap();
        site.reload();
        let refused = site.connect(1, &[&CLIENT[..], &[option, "-sess_in", "session"]].concat());
        assert!(!refused.contains("SSL_PROTOCOL"), "{refused}");
    }
}

#[test]
fn other_settings_have_other_keys() {
    let site = Site::start();
    let first = site.connect(1, &[&CLIENT[..], &["-sess_out", "session"]].concat());
    assert!(first.contains("SSL_CLIENT_VERIFY=SUCCESS\n"), "{first}");
    site.0.rewrite(&Site::text("client_verify = \"optional\""));
    site.reload();
    let next = site.connect(1, &[&CLIENT[..], &["-sess_in", "session"]].concat());
    assert!(next.contains("SSL_SESSION_RESUMED=Initial\n"), "{next}");
}
