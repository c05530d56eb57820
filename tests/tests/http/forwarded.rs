//! `X-Forwarded-*` is believed from trusted proxies and from nobody else.

use crate::answer;
use outboard_e2e::{Configured, Docroot, Wire};
use std::sync::LazyLock;

const NAMES: &str = "REMOTE_ADDR,HTTPS,REQUEST_SCHEME,HTTP_HOST,SERVER_NAME";
const FIELDS: &str = "X-Forwarded-For: 203.0.113.9, 198.51.100.7\r\nX-Forwarded-Proto: https\r\n\
                      X-Forwarded-Host: shop.example\r\n";

/// Two listeners: the first one trusts this machine, the second one nobody, the third one half.
fn proxied() -> &'static Configured {
    static PROXIED: LazyLock<Configured> = LazyLock::new(|| {
        let text = "
            [[listen]]
            address = \"127.0.0.1:0\"
            trusted_proxies = [\"127.0.0.0/8\", \"198.51.100.0/24\"]
            [[listen]]
            address = \"127.0.0.2:0\"
            [[listen]]
            address = \"127.0.0.3:0\"
            trusted_proxies = [\"127.0.0.0/8\"]
            forwarded_headers = [\"proto\"]
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
    let content_type = "Content-type: text/plain;charset=UTF-8\r\n";
    let transcript = wire.to_end();
    assert_eq!(transcript, answer("200 OK", content_type, "Connection: close\r\n", seen));
}

#[test]
fn a_trusted_proxy_is_believed_and_the_chain_is_read_from_its_end() {
    sees(
        0,
        FIELDS,
        "REMOTE_ADDR=203.0.113.9\nHTTPS=on\nREQUEST_SCHEME=https\nHTTP_HOST=shop.example\n\
         SERVER_NAME=shop.example\n",
    );
}

#[test]
fn what_a_client_wrote_before_the_first_stranger_is_not_believed() {
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

#[test]
fn a_chain_of_nonsense_names_no_client() {
    sees(
        0,
        "X-Forwarded-For: <script>, 1.2.3, ,\r\n",
        "REMOTE_ADDR=127.0.0.1\nHTTPS=(none)\nREQUEST_SCHEME=http\nHTTP_HOST=a\nSERVER_NAME=a\n",
    );
}
