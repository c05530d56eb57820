//! `X-Forwarded-*` is believed from trusted proxies and from nobody else.

use crate::answer;
use outboard_e2e::{Configured, Docroot, Protocol, Request, Wire};
use std::sync::LazyLock;

const NAMES: &str = "REMOTE_ADDR,HTTPS,REQUEST_SCHEME,HTTP_HOST,SERVER_NAME";
const FIELDS: &str = "X-Forwarded-For: 203.0.113.9, 198.51.100.7\r\nX-Forwarded-Proto: https\r\n\
                      X-Forwarded-Host: shop.example\r\n";

/// Four listeners: the first one trusts this machine in everything, the second one nobody, the
/// third one half, the fourth one as far as is usual.
fn proxied() -> &'static Configured {
    static PROXIED: LazyLock<Configured> = LazyLock::new(|| {
        let text = "
            [[listen]]
            address = \"127.0.0.1:0\"
            trusted_proxies = [\"127.0.0.0/8\", \"198.51.100.0/24\"]
            forwarded_headers = [\"for\", \"proto\", \"host\"]
            [[listen]]
            address = \"127.0.0.2:0\"
            [[listen]]
            address = \"127.0.0.3:0\"
            trusted_proxies = [\"127.0.0.0/8\"]
            forwarded_headers = [\"proto\"]
            [[listen]]
            address = \"127.0.0.4:0\"
            trusted_proxies = [\"127.0.0.0/8\"]
            [[listen]]
            address = \"127.0.0.5:0\"
            trusted_proxies = [\"192.0.2.1\"]
            [app.site]
            root = \"www\"
            [php.ini]
            expose_php = false
        ";
        Configured::start(Docroot::of("http"), text)
    });
    &PROXIED
}

#[track_caller]
fn sees(listener: usize, fields: &str, seen: &str) {
    let mut wire = Wire::open(proxied().address_of(listener));
    wire.send(format!(
        "GET /server.php?names={NAMES} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n"
    ));
    // A listener of HTTP/3 is encrypted.
    let seen = match Protocol::of_run().scheme() {
        "https" => {
            seen.replace("HTTPS=(none)\nREQUEST_SCHEME=http\n", "HTTPS=on\nREQUEST_SCHEME=https\n")
        }
        _ => seen.to_owned(),
    };
    let content_type = "Content-type: text/plain;charset=UTF-8\r\n";
    let transcript = wire.to_end();
    assert_eq!(transcript, answer("200 OK", content_type, "Connection: close\r\n", &seen));
}

#[test]
fn the_chain_of_trusted_proxies_is_read_from_its_end() {
    sees(
        0,
        FIELDS,
        "REMOTE_ADDR=203.0.113.9\nHTTPS=on\nREQUEST_SCHEME=https\nHTTP_HOST=shop.example\n\
         SERVER_NAME=shop.example\n",
    );
}

/// As nginx's $host, by which scripts and sections of php.ini know the site.
#[test]
fn the_name_of_the_server_has_no_final_dot() {
    let seen = "REMOTE_ADDR=127.0.0.1\nHTTPS=(none)\nREQUEST_SCHEME=http\nHTTP_HOST=b.test.\n\
                SERVER_NAME=b.test\n";
    for host in ["b.test.", "b.test.:81"] {
        let seen = seen.replace("b.test.\n", &format!("{host}\n"));
        sees(0, &format!("X-Forwarded-Host: {host}\r\n"), &seen);
    }
    let mut client = proxied().client();
    for host in ["b.test.", "b.test.:81"] {
        let request = Request::get("/server.php?names=SERVER_NAME").header("Host", host);
        assert_eq!(client.send(&request).expect(200).text(), "SERVER_NAME=b.test\n");
    }
}

#[test]
fn the_port_is_the_one_that_the_client_connected_to() {
    let port = |listener: usize, fields: &[(&str, &str)]| {
        let request = Request::get("/server.php?names=SERVER_PORT").header("Host", "a:82");
        let request =
            fields.iter().fold(request, |request, (name, value)| request.header(name, value));
        let bytes = request.header("Connection", "close").to_bytes("a");
        let mut wire = Wire::open(proxied().address_of(listener));
        wire.send(String::from_utf8(bytes).unwrap());
        let transcript = wire.to_end();
        transcript.split_once("SERVER_PORT=").unwrap().1.trim().parse::<u16>().unwrap()
    };
    let all = [
        ("X-Forwarded-Port", "8443"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "b:83"),
    ];
    assert_eq!(port(0, &all), 8443);
    assert_eq!(port(0, &all[1..]), 83);
    assert_eq!(port(0, &all[1..2]), 443);
    assert_eq!(port(0, &[("X-Forwarded-Proto", "http")]), 80);
    assert_eq!(port(0, &[("X-Forwarded-Port", "0")]), proxied().address_of(0).port());
    assert_eq!(port(1, &all), proxied().address_of(1).port());
    // It does not say that it sets them.
    assert_eq!(port(2, &all), 443);
}

#[test]
fn addresses_before_the_first_untrusted_one_are_ignored() {
    sees(
        0,
        "X-Forwarded-For: 192.0.2.1, 203.0.113.9, 198.51.100.7\r\n",
        "REMOTE_ADDR=203.0.113.9\nHTTPS=(none)\nREQUEST_SCHEME=http\nHTTP_HOST=a\nSERVER_NAME=a\n",
    );
}

#[test]
fn a_stranger_is_not_believed() {
    sees(
        1,
        FIELDS,
        "REMOTE_ADDR=127.0.0.1\nHTTPS=(none)\nREQUEST_SCHEME=http\nHTTP_HOST=a\nSERVER_NAME=a\n",
    );
}

#[test]
fn only_the_named_headers_are_believed() {
    sees(
        2,
        FIELDS,
        "REMOTE_ADDR=127.0.0.1\nHTTPS=on\nREQUEST_SCHEME=https\nHTTP_HOST=a\nSERVER_NAME=a\n",
    );
}

/// A proxy that says nothing of the host hands through what a visitor says.
#[test]
fn the_forwarded_host_is_trusted_only_if_configured() {
    let seen = "REMOTE_ADDR=127.0.0.1\nHTTPS=(none)\nREQUEST_SCHEME=http\nHTTP_HOST=a\n\
                SERVER_NAME=a\n";
    sees(3, "X-Forwarded-Host: evil.test\r\nForwarded: host=evil.test\r\n", seen);
}

#[test]
fn the_nearest_proxy_decides_host_and_scheme() {
    let seen = "REMOTE_ADDR=127.0.0.1\nHTTPS=on\nREQUEST_SCHEME=https\nHTTP_HOST=b.test:81\n\
                SERVER_NAME=b.test\n";
    sees(
        0,
        "X-Forwarded-Host: evil.test\r\nX-Forwarded-Host: evil.test, b.test:81\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Proto: http, https\r\n",
        seen,
    );
}

#[test]
fn a_forwarded_host_that_is_none_is_400_as_such_a_host_is() {
    for host in ["a@evil.test/x", "evil.test/", "a b", "[::1", "a:b", "<script>", "é.test"] {
        let mut wire = Wire::open(proxied().address_of(0));
        wire.send(format!(
            "GET /server.php?names={NAMES} HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: {host}\r\n\
             Connection: close\r\n\r\n"
        ));
        let transcript = wire.to_end();
        assert!(transcript.starts_with("HTTP/1.1 400 "), "{host}: {transcript}");
    }
}

const CLAIMS: &str = "HTTP_X_REAL_IP,HTTP_X_FORWARDED_FOR,HTTP_X_FORWARDED_PREFIX,\
                      HTTP_X_ORIGINAL_URL,HTTP_FORWARDED,HTTP_FRONT_END_HTTPS";
const CLAIMING: &str = "X-Real-IP: 6.6.6.6\r\nX-Forwarded-For: 6.6.6.6\r\n\
                        X-Forwarded-Prefix: /evil\r\nX-Original-URL: /admin\r\n\
                        Forwarded: for=6.6.6.6\r\nFront-End-Https: on\r\n\
                        X_Real_IP: 6.6.6.6\r\n";

fn claimed(listener: usize) -> String {
    let mut wire = Wire::open(proxied().address_of(listener));
    wire.send(format!(
        "GET /server.php?names={CLAIMS} HTTP/1.1\r\nHost: a\r\n{CLAIMING}Connection: close\r\n\r\n"
    ));
    let transcript = wire.to_end();
    transcript.split_once("\r\n\r\n").expect("a head and a body").1.to_owned()
}

#[test]
fn untrusted_forwarding_headers_do_not_reach_scripts() {
    let nothing: String = CLAIMS.split(',').map(|name| format!("{name}=(none)\n")).collect();
    assert_eq!(claimed(4), nothing);
}

/// As behind nginx: without a proxy a script knows them for the client's own words.
#[test]
fn without_a_proxy_scripts_get_the_clients_headers() {
    let claimed = claimed(1);
    assert!(claimed.contains("HTTP_X_REAL_IP=6.6.6.6\n"), "{claimed}");
    assert!(claimed.contains("HTTP_X_FORWARDED_PREFIX=/evil\n"), "{claimed}");
}

#[test]
fn a_chain_of_nonsense_names_no_client() {
    sees(
        0,
        "X-Forwarded-For: <script>, 1.2.3, ,\r\n",
        "REMOTE_ADDR=127.0.0.1\nHTTPS=(none)\nREQUEST_SCHEME=http\nHTTP_HOST=a\nSERVER_NAME=a\n",
    );
}
