//! Which client a chain of proxies stands for.

use super::*;
use outboard_config::Config;
use outboard_http1::{HeadLimits, HeadStatus};
use std::path::Path;

/// Forwarding of a listener behind proxies in 10.0.0.0/8 and 2001:db8::/32.
fn forwarding(headers: &str) -> Forwarding {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntrusted_proxies = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n\
         {headers}\n[app.site]\nroot = \"/tmp\"\n"
    );
    let config = Config::parse(&text, Path::new("test.toml")).unwrap();
    config.listeners[0].forwarding.clone()
}

fn peer(address: &str) -> PeerInfo {
    PeerInfo::new(Peer::Tcp(address.parse().unwrap()))
}

fn forwarded(forwarding: &Forwarding, peer: &PeerInfo, headers: &str) -> Forwarded {
    let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    let mut head = RequestHead::new();
    let parsed = head.parse(input.as_bytes(), &HeadLimits::default()).unwrap();
    assert!(matches!(parsed, HeadStatus::Complete { .. }));
    Forwarded::read(forwarding, peer, &head, input.as_bytes())
}

#[test]
fn headers_of_an_untrusted_peer_are_ignored() {
    let headers = "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n";
    let forwarding = forwarding("");
    assert_eq!(forwarded(&forwarding, &peer("192.0.2.1:5"), headers), Forwarded::default());
    let mapped = peer("[::ffff:192.0.2.1]:5");
    assert_eq!(forwarded(&forwarding, &mapped, headers), Forwarded::default());
}

#[test]
fn the_client_is_the_last_address_that_is_no_proxy() {
    let forwarding = forwarding("");
    let proxy = peer("10.0.0.1:5");
    for (chain, client) in [
        ("192.0.2.9", "192.0.2.9"),
        ("198.51.100.1, 192.0.2.9", "192.0.2.9"),
        ("192.0.2.9, 10.0.0.2", "192.0.2.9"),
        ("192.0.2.9:1234, 10.0.0.2:80", "192.0.2.9"),
        ("[2001:db8::9]:443", "2001:db8::9"),
        ("2001:4860::1, 2001:db8::9", "2001:4860::1"),
        ("::ffff:192.0.2.9", "192.0.2.9"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        // An invalid entry ends the chain: what precedes it may be invented.
        ("192.0.2.9, unknown, 10.0.0.2", "10.0.0.2"),
    ] {
        let headers = format!("X-Forwarded-For: {chain}\r\n");
        let found = forwarded(&forwarding, &proxy, &headers).client;
        assert_eq!(found.as_deref(), Some(client), "{chain}");
    }
}

#[test]
fn several_lines_are_one_chain() {
    let headers = "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 192.0.2.9\r\n";
    let found = forwarded(&forwarding(""), &peer("10.0.0.1:5"), headers);
    assert_eq!(found.client.as_deref(), Some("192.0.2.9"));
}

#[test]
fn a_proxy_without_the_header_has_no_client() {
    for headers in ["", "X-Forwarded-For: \r\n", "X-Forwarded-For: unknown\r\n"] {
        let found = forwarded(&forwarding(""), &peer("10.0.0.1:5"), headers);
        assert_eq!(found.client, None, "{headers:?}");
    }
}

#[test]
fn the_nearest_proxy_decides_about_the_scheme() {
    for (headers, https) in [
        ("X-Forwarded-Proto: https\r\n", true),
        ("X-Forwarded-Proto: HTTPS\r\n", true),
        ("X-Forwarded-Proto: https, http\r\n", false),
        ("X-Forwarded-Proto: http\r\nX-Forwarded-Proto: https\r\n", true),
        ("X-Forwarded-Proto: \r\n", false),
    ] {
        let found = forwarded(&forwarding(""), &peer("10.0.0.1:5"), headers);
        assert_eq!(found.https, https, "{headers:?}");
    }
}

#[test]
fn a_host_is_accepted_only_if_configured_and_valid() {
    let headers = "X-Forwarded-Host: shop.test\r\n";
    let proxy = peer("10.0.0.1:5");
    assert_eq!(forwarded(&forwarding(""), &proxy, headers).host, None);
    let forwarding = forwarding("forwarded_headers = [\"for\", \"host\"]");
    assert_eq!(forwarded(&forwarding, &proxy, headers).host.as_deref(), Some(&b"shop.test"[..]));
    let invalid = forwarded(&forwarding, &proxy, "X-Forwarded-Host: a/../b\r\n");
    assert!(invalid.has_bad_host);
    let https = forwarded(&forwarding, &proxy, "X-Forwarded-Proto: https\r\n").https;
    assert!(!https, "the scheme is not in the list");
}

#[test]
fn addresses_are_written_as_clients_know_them() {
    let mapped = peer("[::ffff:192.0.2.1]:5");
    assert_eq!((&*mapped.text, mapped.port()), ("192.0.2.1", 5));
    assert_eq!(mapped.ip(), Some("192.0.2.1".parse().unwrap()));
    let unix = PeerInfo::new(Peer::Unix);
    assert_eq!((&*unix.text, unix.port(), unix.ip()), ("unix:", 0, None));
}

#[test]
fn headers_that_only_proxies_know_are_claims() {
    for name in ["X-Forwarded-For", "x-forwarded-anything", "Forwarded", "CF-Connecting-IP"] {
        assert!(is_claim(name.as_bytes()), "{name}");
    }
    for name in ["X-Forward", "Host", "Via", "X-Requested-With"] {
        assert!(!is_claim(name.as_bytes()), "{name}");
    }
    assert!(is_ambiguous(b"X_Real_IP") && !is_ambiguous(b"X-Real-IP"));
}
