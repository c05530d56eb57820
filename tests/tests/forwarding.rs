//! The proxies of docs/guide/proxying.md, as they are written there: no visitor chooses his address,
//! his scheme or the host through them.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Child, Configured, Docroot, Launch, Scratch};
use rustix::process::geteuid;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// What a visitor says of himself.
const LIES: [&str; 8] = [
    "X-Forwarded-For: 6.6.6.6",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Host: evil.test",
    "X-Real-IP: 6.6.6.6",
    "Forwarded: for=6.6.6.6;host=evil.test;proto=http",
    "X_Forwarded_Host: evil.test",
    "X_Forwarded_For: 6.6.6.6",
    "Connection: X-Forwarded-For, X-Forwarded-Proto",
];

/// The blocks of a language in a section of the guide.
fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/proxying.md");
    let page = std::fs::read_to_string(page).expect("the guide is there");
    let section = page.split("\n## ").find(|section| section.starts_with("Behind a proxy\n"));
    let section = section.expect("the guide has the section");
    let fence = format!("```{language}\n");
    let blocks = section.split(&fence).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The text with what only the guide's reader has replaced by what the test has.
#[track_caller]
fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(text.to_owned(), |text, (theirs, ours)| {
        assert!(text.contains(theirs), "the guide no longer says {theirs}:\n{text}");
        text.replace(theirs, ours)
    })
}

/// The guide's nginx, in front of `upstream`, and its port.
fn nginx(scratch: &Scratch, upstream: &str) -> (Child, u16) {
    let certificate = Certificate::make(scratch.path(), "example", "DNS:example.org");
    let path = scratch.path().display();
    let user = if geteuid().is_root() { "user root;" } else { "" };
    // Between asking the kernel for a free port and nginx taking it, another may have been faster.
    for _ in 0..10 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = replaced(
            &blocks("nginx")[0],
            &[
                ("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl")),
                (
                    "/etc/letsencrypt/live/example.org/fullchain.pem",
                    certificate.chain.to_str().unwrap(),
                ),
                (
                    "/etc/letsencrypt/live/example.org/privkey.pem",
                    certificate.key.to_str().unwrap(),
                ),
                ("http://127.0.0.1:8080", upstream),
            ],
        );
        let text = format!(
            "daemon off; worker_processes 1; pid {path}/nginx.pid; error_log stderr notice; {user}\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log off; client_body_temp_path {path}/a; fastcgi_temp_path {path}/b;\n\
             proxy_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
             {server} }}\n"
        );
        let file = scratch.file("nginx.conf", text);
        let nginx = Launch::new("/usr/sbin/nginx").args(["-e", "stderr", "-c"]).arg(file).start();
        match nginx.wait_for(|line| line.contains("start worker process ").then_some(())) {
            Ok(()) => return (nginx, port),
            Err(output) if output.contains("Address already in use") => continue,
            Err(output) => panic!("nginx does not start: {output}"),
        }
    }
    panic!("nginx found every port in use");
}

/// The guide's Caddy, in front of `upstream`, and its port. The certificate is of an authority of
/// its own, for nobody else gives it one here.
fn caddy(scratch: &Scratch, upstream: &str) -> (Child, u16) {
    let site = replaced(&blocks("text")[0], &[("127.0.0.1:8080", upstream)]);
    for _ in 0..10 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "{{\nadmin off\nauto_https disable_redirects\ndefault_bind 127.0.0.1\n\
             https_port {port}\nlocal_certs\nskip_install_trust\n\
             storage file_system {}\n}}\n{site}",
            scratch.folder("certificates").display()
        );
        let program = Launch::new("caddy").args(["run", "--adapter", "caddyfile", "--config"]);
        let program = program.arg(scratch.file("Caddyfile", text));
        let caddy = program.env("HOME", scratch.path()).start();
        let is_ready =
            |line: &str| line.contains("certificate obtained successfully").then_some(());
        match caddy.wait_for(is_ready) {
            Ok(()) => return (caddy, port),
            Err(output) if output.contains("address already in use") => continue,
            Err(output) => panic!("caddy does not start: {output}"),
        }
    }
    panic!("caddy found every port in use");
}

/// Lies through the proxy, as a visitor with an address of his own; it says the host and the
/// visitor's addresses in its own way.
#[track_caller]
fn nobody_is_fooled(port: u16, host: &str, addresses: &str) {
    let names = "REMOTE_ADDR,HTTPS,REQUEST_SCHEME,HTTP_HOST,SERVER_NAME,HTTP_X_FORWARDED_FOR,\
                 HTTP_X_FORWARDED_PROTO,HTTP_X_FORWARDED_HOST,HTTP_X_REAL_IP,HTTP_FORWARDED";
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--insecure", "--max-time", "60"]);
    curl.args(["--interface", "127.0.0.9", "--resolve", &format!("example.org:{port}:127.0.0.1")]);
    curl.args(LIES.iter().flat_map(|lie| ["--header", lie]));
    let output = curl.arg(format!("https://example.org:{port}/server.php?names={names}")).output();
    let output = output.expect("curl is there");
    assert!(output.status.success(), "{output:?}");
    let expected = format!(
        "REMOTE_ADDR=127.0.0.9\nHTTPS=on\nREQUEST_SCHEME=https\nHTTP_HOST={host}\n\
         SERVER_NAME=example.org\nHTTP_X_FORWARDED_FOR={addresses}\n\
         HTTP_X_FORWARDED_PROTO=https\nHTTP_X_FORWARDED_HOST={host}\n\
         HTTP_X_REAL_IP=127.0.0.9\nHTTP_FORWARDED=(none)\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

/// The guide's server that trusts a proxy of the same machine.
fn over_tcp() -> Configured {
    let text = replaced(
        &blocks("toml")[0],
        &[("127.0.0.1:8080", "127.0.0.1:0"), ("/srv/site/public", "www")],
    );
    Configured::start(Docroot::of("http"), &text)
}

#[test]
fn the_guides_proxy_lets_no_visitor_forge_address_or_host() {
    let site = over_tcp();
    let scratch = Scratch::new("proxy");
    let (_nginx, port) = nginx(&scratch, &format!("http://{}", site.address()));
    nobody_is_fooled(port, "example.org", "6.6.6.6, 127.0.0.9");
}

#[test]
fn nor_does_the_guides_caddy() {
    let site = over_tcp();
    let scratch = Scratch::new("caddy");
    let (_caddy, port) = caddy(&scratch, &site.address().to_string());
    nobody_is_fooled(port, &format!("example.org:{port}"), "127.0.0.9");
}

#[test]
fn nor_does_it_over_a_unix_socket() {
    let text = replaced(
        &blocks("toml")[1],
        &[("/run/outboard/site.sock", "site.sock"), ("/srv/site/public", "www")],
    );
    let site = Configured::start(Docroot::of("http"), &text);
    let socket = site.docroot().beside().path().join("site.sock");
    let scratch = Scratch::new("proxy");
    let (_nginx, port) = nginx(&scratch, &format!("http://unix:{}:", socket.display()));
    nobody_is_fooled(port, "example.org", "6.6.6.6, 127.0.0.9");
}
