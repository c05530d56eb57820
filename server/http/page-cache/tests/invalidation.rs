//! RFC 9111 4.4: invalidation by unsafe requests.

mod support;

use outboard_http1::Method;
use outboard_page_cache::{Fields, Response, Target, invalidated, is_unsafe};
use support::lines;

const TARGET: Target<'static> =
    Target { scheme: b"https", authority: b"a.test", path_and_query: b"/dir/page?x=1" };

fn paths(method: Method, status: u16, response: &str) -> Vec<String> {
    let response = lines(response);
    let response = Response { status, fields: Fields(&response) };
    let paths = invalidated(method, TARGET, response);
    paths.into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
}

#[test]
fn a_successful_unsafe_request_invalidates_its_target() {
    for method in [Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Other] {
        for status in [200, 201, 204, 302, 303] {
            assert_eq!(paths(method, status, ""), ["/dir/page?x=1"], "{method:?} {status}");
        }
    }
}

#[test]
fn safe_methods_and_errors_invalidate_nothing() {
    for method in [Method::Get, Method::Head, Method::Options, Method::Trace] {
        assert!(!is_unsafe(method));
        assert!(paths(method, 200, "").is_empty());
    }
    for status in [400, 404, 409, 500, 503] {
        assert!(paths(Method::Post, status, "Location: /b").is_empty(), "{status}");
    }
}

#[test]
fn only_locations_of_the_same_origin_are_invalidated() {
    for (location, expected) in [
        ("/b", Some("/b")),
        ("/b?c#d", Some("/b?c")),
        ("b", Some("/dir/b")),
        ("?y", Some("/dir/page?y")),
        ("https://a.test/b", Some("/b")),
        ("HTTPS://A.test:443/b", Some("/b")),
        ("https://a.test", Some("/")),
        ("https://a.test?q", Some("/?q")),
        ("//a.test/b", Some("/b")),
        ("/go?to=http://b.test/", Some("/go?to=http://b.test/")),
        ("http://a.test/b", None),
        ("https://a.test:8443/b", None),
        ("https://b.test/b", None),
        ("//b.test/b", None),
        ("https://a.test@b.test/b", None),
        ("#d", None),
        ("", None),
    ] {
        for name in ["Location", "Content-Location"] {
            let got = paths(Method::Post, 201, &format!("{name}: {location}"));
            let mut wanted = vec!["/dir/page?x=1"];
            wanted.extend(expected);
            assert_eq!(got, wanted, "{name}: {location}");
        }
    }
}
