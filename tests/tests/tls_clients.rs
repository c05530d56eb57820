//! Certificates of clients, revocation, stapled OCSP responses and versions, as openssl sees them.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Configured, Docroot, eventually, openssl, s_client};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server whose clients have certificates of the authority in `ca.pem`.
struct Site(Configured);

impl Site {
    /// With these keys of the listener and of the app.
    fn start(listener: &str, app: &str) -> Site {
        let docroot = Docroot::of("tls");
        let folder = docroot.beside().path().to_owned();
        Certificate::make(&folder, "one", "DNS:one.test");
        Certificate::make(&folder, "stranger", "DNS:stranger.test");
        authority(&folder);
        let text = Site::text(&folder, listener, app);
        Site(Configured::start(docroot, &text))
    }

    fn text(folder: &Path, listener: &str, app: &str) -> String {
        let ocsp = if folder.join("ocsp.der").exists() { ", ocsp = \"ocsp.der\"" } else { "" };
        let listen = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = [{{ certificate = \"one.pem\", key = \"one.key\"{ocsp} }}]\n{listener}\n"
        );
        let text = Configured::text("").replace("[app.site]\n", &format!("[app.site]\n{app}\n"));
        let rest = text.split_once('\n').expect("the line with `listen`").1;
        format!("{rest}{listen}")
    }

    fn folder(&self) -> PathBuf {
        self.0.docroot().beside().path().to_owned()
    }

    fn connect(&self, options: &[&str]) -> String {
        let url = &self.0.listeners()[0];
        let address: SocketAddr =
            url.trim_start_matches("https://").trim_end_matches('/').parse().unwrap();
        s_client(&self.folder(), address, "/ssl.php", options)
    }
}

/// An authority, and a client's certificate of it.
fn authority(folder: &Path) {
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let make = |arguments: &[&str]| openssl(folder, &[arguments, &key[..]].concat());
    make(&[
        "req",
        "-x509",
        "-days",
        "9",
        "-subj",
        "/O=Shop/CN=CA",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    ]);
    make(&["req", "-subj", "/O=Shop/CN=Jane Doe", "-keyout", "jane.key", "-out", "jane.csr"]);
    // Without an extension it would be of version 1, which is not accepted.
    std::fs::write(folder.join("jane.ext"), "basicConstraints = critical, CA:FALSE\n").unwrap();
    openssl(
        folder,
        &[
            "x509",
            "-req",
            "-extfile",
            "jane.ext",
            "-in",
            "jane.csr",
            "-days",
            "9",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-set_serial",
            "0x1234abcd",
            "-out",
            "jane.pem",
        ],
    );
}

/// A revocation list of the authority, with or without the client's certificate.
fn revocation_list(folder: &Path, revoked: bool) {
    let state = if revoked { "R\t351231235959Z\t260101000000Z" } else { "V\t351231235959Z\t" };
    std::fs::write(
        folder.join("index"),
        format!("{state}\t1234ABCD\tunknown\t/O=Shop/CN=Jane Doe\n"),
    )
    .unwrap();
    std::fs::write(
        folder.join("ca.cnf"),
        "[ca]\ndefault_ca = here\n[here]\ndatabase = index\ndefault_md = sha256\ncrlnumber = number\n",
    )
    .unwrap();
    std::fs::write(folder.join("number"), "01\n").unwrap();
    openssl(
        folder,
        &[
            "ca", "-config", "ca.cnf", "-gencrl", "-cert", "ca.pem", "-keyfile", "ca.key",
            "-crldays", "5", "-out", "crl.pem",
        ],
    );
}

const JANE: [&str; 4] = ["-cert", "jane.pem", "-key", "jane.key"];
const STRANGER: [&str; 4] = ["-cert", "stranger.pem", "-key", "stranger.key"];

#[test]
fn a_required_certificate_is_verified_and_described() {
    let site = Site::start("client_ca = \"ca.pem\"", "");
    let printed = site.connect(&JANE);
    for line in [
        "SSL_CIPHER=TLS_",
        "SSL_CLIENT_CERT=-----BEGIN CERTIFICATE-----|",
        "SSL_CLIENT_FINGERPRINT_SHA256=",
        "SSL_CLIENT_I_DN=CN=CA,O=Shop\n",
        "SSL_CLIENT_M_SERIAL=1234ABCD\n",
        "SSL_CLIENT_S_DN=CN=Jane Doe,O=Shop\n",
        "SSL_CLIENT_VERIFY=SUCCESS\n",
        "SSL_CLIENT_V_END=",
        "SSL_CLIENT_V_START=",
        "SSL_PROTOCOL=TLSv1.3\n",
        "SSL_SESSION_RESUMED=Initial\n",
    ] {
        assert!(printed.contains(&format!("\n{line}")), "{line} {printed}");
    }
    for options in [&[][..], &STRANGER] {
        let refused = site.connect(options);
        assert!(refused.contains("alert") && !refused.contains("SSL_PROTOCOL"), "{refused}");
    }
}

#[test]
fn an_optional_certificate_is_described_only_if_it_is_valid() {
    let site = Site::start("client_ca = \"ca.pem\"\nclient_verify = \"optional\"", "");
    assert!(site.connect(&JANE).contains("SSL_CLIENT_VERIFY=SUCCESS\n"));
    let none = site.connect(&[]);
    assert!(none.contains("SSL_CLIENT_VERIFY=NONE\n"), "{none}");
    let invalid = site.connect(&STRANGER);
    let verdict = "SSL_CLIENT_VERIFY=FAILED:unable to get local issuer certificate\n";
    assert!(invalid.contains(verdict), "{invalid}");
    assert!(
        !invalid.contains("SSL_CLIENT_S_DN") && !invalid.contains("SSL_CLIENT_CERT"),
        "{invalid}"
    );
}

#[test]
fn an_app_that_requires_a_certificate_refuses_others_with_403() {
    let listener = "client_ca = \"ca.pem\"\nclient_verify = \"optional\"";
    let site = Site::start(listener, "require_client_certificate = true");
    assert!(site.connect(&JANE).contains("HTTP/1.1 200 OK"));
    for options in [&[][..], &STRANGER] {
        let refused = site.connect(options);
        assert!(refused.contains("HTTP/1.1 403 Forbidden"), "{refused}");
    }
    let reasons = site.0.status()["reasons"].to_string();
    assert!(reasons.contains("\"client_certificate\""), "{reasons}");
}

#[test]
fn a_revoked_certificate_is_refused_after_a_reload() {
    let site = Site::start("client_ca = \"ca.pem\"", "");
    let folder = site.folder();
    for (revoked, accepted) in [(false, true), (true, false)] {
        revocation_list(&folder, revoked);
        site.0.rewrite(&Site::text(
            &folder,
            "client_ca = \"ca.pem\"\nclient_crl = \"crl.pem\"",
            "",
        ));
        let outcome = site.0.command("reload", &[]);
        assert!(outcome.status.success(), "{outcome:?}");
        let printed = site.connect(&JANE);
        assert_eq!(printed.contains("SSL_CLIENT_VERIFY=SUCCESS\n"), accepted, "{printed}");
    }
}

#[test]
fn headers_of_a_request_cannot_forge_variables() {
    let site = Site::start("client_ca = \"ca.pem\"\nclient_verify = \"optional\"", "");
    let forged =
        "/ssl.php HTTP/1.1\r\nSSL_CLIENT_VERIFY: SUCCESS\r\nSSL-Client-Verify: SUCCESS\r\nX: ";
    let url = &site.0.listeners()[0];
    let address = url.trim_start_matches("https://").trim_end_matches('/').parse().unwrap();
    let printed = s_client(&site.folder(), address, forged, &[]);
    assert!(printed.contains("\nSSL_CLIENT_VERIFY=NONE\n"), "{printed}");
    assert!(!printed.contains("\nSSL_CLIENT_VERIFY=SUCCESS"), "{printed}");
    // It is a header like any other.
    assert!(printed.contains("\nHTTP_SSL_CLIENT_VERIFY=SUCCESS\n"), "{printed}");
}

#[test]
fn http2_streams_have_the_variables_too() {
    let site = Site::start("client_ca = \"ca.pem\"", "require_client_certificate = true");
    let url = format!("{}ssl.php", site.0.listeners()[0]);
    let output = Command::new("curl")
        .args(["-sSk", "--http2", "--cert", "jane.pem", "--key", "jane.key", &url, &url])
        .args(["-w", "HTTP/%{http_version}\n"])
        .current_dir(site.folder())
        .output()
        .expect("curl is there");
    let printed = String::from_utf8_lossy(&output.stdout);
    for line in ["SSL_CLIENT_VERIFY=SUCCESS\n", "SSL_CLIENT_S_DN=CN=Jane Doe,O=Shop\n", "HTTP/2\n"]
    {
        assert_eq!(printed.matches(line).count(), 2, "{printed}");
    }
}

#[test]
fn the_oldest_accepted_version_is_configured() {
    let site = Site::start("tls_minimum = \"1.3\"", "");
    let refused = site.connect(&["-tls1_2"]);
    assert!(refused.contains("alert protocol version"), "{refused}");
    assert!(site.connect(&["-tls1_3"]).contains("SSL_PROTOCOL=TLSv1.3\n"));
}

#[test]
fn a_renewed_certificate_is_served_without_a_reload() {
    let site = Site::start("", "");
    let folder = site.folder();
    let subject = || {
        let printed = site.connect(&[]);
        printed.lines().find(|line| line.starts_with("subject=")).expect("a certificate").to_owned()
    };
    assert!(subject().contains("one"));
    for file in ["stranger.pem", "stranger.key"] {
        let target = file.replace("stranger", "one");
        std::fs::rename(folder.join(file), folder.join(target)).unwrap();
    }
    eventually("the new certificate is sent", || subject().contains("stranger"));
    site.0.logs(&["one.pem: the certificate was renewed"]);
}

#[test]
fn an_ocsp_response_is_stapled_and_read_again_when_it_changes() {
    let site = Site::start("", "");
    let folder = site.folder();
    assert!(site.connect(&["-status"]).contains("OCSP response: no response sent"));
    let respond = |days: &str| {
        std::fs::write(folder.join("index"), "V\t351231235959Z\t\t01\tunknown\t/CN=one\n").unwrap();
        let asked = ["ocsp", "-issuer", "one.pem", "-cert", "one.pem", "-reqout", "request.der"];
        openssl(&folder, &asked);
        let given = [
            "ocsp", "-index", "index", "-CA", "one.pem", "-rsigner", "one.pem", "-rkey", "one.key",
        ];
        let rest = ["-reqin", "request.der", "-respout", "new.der", "-ndays", days];
        openssl(&folder, &[&given[..], &rest].concat());
        std::fs::rename(folder.join("new.der"), folder.join("ocsp.der")).unwrap();
    };
    respond("3");
    site.0.rewrite(&Site::text(&folder, "", ""));
    assert!(site.0.command("reload", &[]).status.success());
    let stapled = || {
        let printed = site.connect(&["-status"]);
        assert!(printed.contains("OCSP Response Status: successful"), "{printed}");
        let line = printed.lines().find(|line| line.contains("Next Update:"));
        line.expect("the response has it").to_owned()
    };
    let first = stapled();
    respond("4");
    eventually("the new response is sent", || stapled() != first);
}
