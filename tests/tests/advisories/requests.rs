//! Requests that other servers have understood in two ways.

use outboard_e2e::{Backend, Configured, Connection, Docroot, Protocol, Request, Response};
use serde_json::Value;
use std::net::SocketAddr;

/// Does not contain what it prints.
const PRINTS_RAN: &str = "<?php echo 'RA', 'N';";

fn variables(response: Response) -> Value {
    serde_json::from_str(&response.expect(200).text()).expect("the fixture prints JSON")
}

/// FrankenPHP CVE-2026-128023, Caddy CVE-2026-30851: PHP and CGI make `_` of what is neither letter
/// nor digit.
#[test]
fn no_field_poses_as_another() {
    let site = Configured::serving("advisories", "");
    let of = |name: &str| {
        let request = Request::get("/variables.php").header(name, "forged");
        variables(site.client().send(&request))["HTTP_X_AUTHENTICATED_USER"].clone()
    };
    assert_eq!(of("X-Authenticated-User"), "forged");
    for mark in ["_", ".", "+", "~", "!", "*", "'", "|", "`", "^", "%", "&", "#", "$"] {
        for name in
            [format!("X{mark}Authenticated{mark}User"), format!("X-Authenticated{mark}User")]
        {
            assert_eq!(of(&name), Value::Null, "{name}");
        }
    }
}

/// FrankenPHP CVE-2026-24895, CVE-2026-45062, CVE-2026-128025 and GHSA-j99q-3wr8-xj43; Caddy
/// CVE-2026-27590 and CVE-2026-27585.
#[test]
fn only_a_file_with_the_suffix_is_run() {
    let docroot = Docroot::of("advisories");
    let folded = "\u{23a}\u{23a}\u{23a}\u{23a}shell";
    let names = [
        "photos.php.php/avatar.jpg".to_owned(),
        "a.php".to_owned(),
        format!("{folded}.php.txt"),
        "shell.\u{24df}\u{24d7}\u{24df}".to_owned(),
        "shell.\u{ff50}\u{ff48}\u{ff50}".to_owned(),
        "shell.phtml.txt".to_owned(),
    ];
    for name in &names {
        docroot.put(&format!("uploads/{name}"), PRINTS_RAN);
    }
    let site = Configured::start(docroot, &Configured::text(""));
    let escaped = |name: &str| -> String {
        name.bytes()
            .map(|byte| match byte.is_ascii() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect()
    };
    assert_eq!(site.client().get("/uploads/a.php").expect(200).text(), "RAN");
    let mut targets: Vec<String> =
        names.iter().filter(|name| *name != "a.php").map(|name| escaped(name)).collect();
    targets.push(format!("{}.php.txt.php", escaped(folded)));
    targets.push(format!("{}.php.txt/x.php", escaped(folded)));
    for target in [
        "a.php.txt/b.php",
        "a.phpx/b.php",
        "*.php",
        "a[.]php",
        "?.php",
        "%3F.php",
        "%5Ba%5D.php",
        "a%5C.php",
        "a.php%00.jpg",
        "a.php%20",
        "a.php.",
        "a.php%0A",
    ] {
        targets.push(target.to_owned());
    }
    for name in &targets {
        let response = site.client().get(&format!("/uploads/{name}"));
        assert!(!response.text().contains("RAN"), "{name} was run");
    }
}

/// FrankenPHP GHSA-jvmv-5538-pqpg: `//HOST/` in a Location is another host (RFC 3986 4.2), and browsers
/// read `\` as `/`.
#[test]
fn no_redirect_to_a_folder_leads_to_another_host() {
    let site = Configured::serving("advisories", "");
    let location = |target: &str| {
        let response = site.client().send(&Request::get(target));
        response.header("location").map(ToOwned::to_owned)
    };
    assert_eq!(location("/blog").as_deref(), Some("/blog/"));
    for host in [
        "/evil.test",
        "%2fevil.test",
        "%5cevil.test",
        "\\evil.test",
        "/%09/evil.test",
        ".//evil.test",
    ] {
        for up in [
            "/..%2fblog",
            "/../blog",
            "/%2e%2e/blog",
            "/..%5cblog",
            "/..;/blog",
            "%2f..%2fblog",
            "/../blog?a",
        ] {
            let target = format!("/{host}{up}");
            if let Some(location) = location(&target) {
                let rest =
                    location.strip_prefix('/').unwrap_or_else(|| panic!("{target}: {location}"));
                let is_host = rest.starts_with(['/', '\\', '\t', '%']);
                assert!(!is_host, "{target} leads to {location}");
            }
        }
    }
}

/// What a request by HTTP/2 with this authority and this `host` is answered with.
async fn asked(address: SocketAddr, authority: &str, host: &str) -> Option<(u16, String)> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(format!("http://{authority}/variables.php"));
    let request = request.header("host", host).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let response = response.await.ok()?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Some(piece) = body.data().await {
        text.extend_from_slice(&piece.ok()?);
    }
    Some((status, String::from_utf8(text).unwrap()))
}

/// FrankenPHP GHSA-2725-rh2w-9j9w: RFC 9113 8.3.1 has the authority decide, or the request refused.
#[test]
fn a_host_field_does_not_replace_the_authority() {
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let site = Configured::serving("advisories", "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |authority, host| {
        let asked = asked(site.served_at(), authority, host);
        runtime.block_on(async {
            tokio::time::timeout(std::time::Duration::from_secs(60), asked).await
        })
    };
    let (status, text) = ask("one.test", "one.test").unwrap().expect("equal names are one");
    assert!(status == 200 && text.contains("\"HTTP_HOST\":\"one.test\""), "{status} {text}");
    for other in ["two.test", "one.test:8443", "one.test.", "one.test, two.test", ""] {
        if let Some((status, text)) = ask("one.test", other).unwrap() {
            let is_refused = (400..500).contains(&status);
            assert!(
                is_refused || text.contains("\"HTTP_HOST\":\"one.test\""),
                "{other}: {status} {text}"
            );
        }
    }
}

/// Varnish VSV00018: a target in absolute form without a path is `/` (RFC 9112 3.2.1), and the authority in
/// it is the host (3.2.2).
#[test]
fn an_absolute_target_reaches_an_upstream_as_a_path() {
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let upstream = Backend::start();
    let tables = format!("[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{}\"\n", upstream.url());
    let site = Configured::serving("advisories", &tables);
    for target in ["http://one.test", "http://one.test/", "HTTP://one.test", "https://one.test"] {
        let mut connection = Connection::open(site.address());
        let head = format!("GET {target} HTTP/1.1\r\nHost: two.test\r\nConnection: close\r\n\r\n");
        connection.send(head.as_bytes()).unwrap();
        connection.response().unwrap();
    }
    let heard = upstream.heard();
    assert!(!heard.is_empty() && heard.iter().all(|target| target == "/"), "{heard:?}");
}

/// Caddy CVE-2026-27588: names are compared without case (RFC 9110 4.2.3), however many there are.
#[test]
fn the_case_of_a_host_decides_nothing() {
    let names: Vec<String> = (0..150).map(|number| format!("\"h{number}.test\"")).collect();
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
         [app.inner]\nroot = \"www\"\nhosts = [{}]\n[[app.inner.access]]\npath = \"/**\"\ndeny = [\"all\"]\n\
         [app.open]\nroot = \"www\"\n",
        names.join(", ")
    );
    let text = text.replace("\"all\"", "\"0.0.0.0/0\", \"::/0\"");
    let site = Configured::start(Docroot::of("advisories"), &text);
    site.client().send(&Request::get("/variables.php").header("Host", "other.test")).expect(200);
    for host in ["h149.test", "H149.TEST", "h149.Test", "H0.test", "h149.test.", "H149.TEST:80"] {
        let response = site.client().send(&Request::get("/variables.php").header("Host", host));
        assert_eq!(response.status, 403, "{host}");
    }
}
